"""Workers of tasks are stopped and killed: no task is lost, and each one takes effect once."""

from tests.broker.polling import eventually
from tests.task_backend.conftest import Project


def began(project: Project) -> None:
    """Returns when the first attempt of `wait_at_first` waits."""
    eventually((project.folder / "began").exists, within_seconds=60)


def test_a_worker_that_is_killed_in_a_task_loses_nothing_and_its_task_takes_effect_once(anywhere: Project) -> None:
    id_ = anywhere.tell("enqueue", "wait_at_first", "interrupted")
    others = anywhere.tell("enqueue_by", {"priority": -1}, *map(str, range(5)))
    with anywhere.working("--threads", "2") as worker:
        began(anywhere)
        worker.kill()
    anywhere.let_deliveries_expire()

    with anywhere.working():
        result = anywhere.ended(id_)
        runs = anywhere.runs(6)

    assert (result["status"], result["attempts"]) == ("SUCCESSFUL", 2)
    assert sorted(runs) == ["0", "1", "2", "3", "4", "interrupted"]
    assert [anywhere.ended(other)["status"] for other in others] == ["SUCCESSFUL"] * 5


def test_a_task_outside_of_a_transaction_runs_again_and_what_it_has_done_remains(project: Project) -> None:
    id_ = project.tell("enqueue_waiting", "loose")
    with project.working() as worker:
        began(project)
        worker.kill()
    project.let_deliveries_expire()

    with project.working():
        result = project.ended(id_)

    assert result["attempts"] == 2
    assert project.tell("runs") == ["loose", "loose"]


def test_a_worker_that_is_stopped_ends_its_task_and_returns_the_others(project: Project) -> None:
    id_ = project.tell("enqueue", "wait_at_first", "long")
    with project.working("--threads", "1") as worker:
        began(project)
        [waiting] = project.tell("enqueue_by", {}, "waiting")
        worker.ask_to_stop()
        (project.folder / "may end").touch()
        eventually(lambda: not worker.is_running())

    assert project.ended(id_)["attempts"] == 1
    assert project.tell("result", waiting)["attempts"] == 0
    with project.working():
        assert project.ended(waiting)["attempts"] == 1


def test_a_worker_answers_the_checks_of_all_databases(project: Project) -> None:
    # Each program dies between its COMMIT and the end of its half message.
    for alias in ("default", "other"):
        project.tell("die_after_commit", alias)

    with project.working():
        assert project.runs(1) == ["dead default"]
        assert project.runs(1, "other") == ["dead other"]


def test_a_worker_that_reloads_stops_and_starts_again(project: Project) -> None:
    watched = project.folder / "watched.py"
    watched.touch()
    with project.working("--reload") as worker:
        project.tell("enqueue", "note", "first")
        project.runs(1)

        def restarted() -> bool:
            watched.touch()
            return worker.log.read_text().count("runs tasks of") > 1

        eventually(restarted, within_seconds=60)
        project.tell("enqueue", "note", "second")

        assert project.runs(2) == ["first", "second"]


def test_a_worker_says_why_it_does_not_start(project: Project) -> None:
    reasons = {
        "--backend nowhere": "The connection 'nowhere' doesn't exist.",
        "--threads 0": "concurrency is 0: at least one handler has to run",
        "--queues mial,mail": "TASKS['default'] has no queue mial: its QUEUES are default, mail.",
        "--invisible-seconds 0": "invisible_seconds",
    }

    said = {words: project.manage("mq_worker", *words.split()).stderr for words in reasons}

    assert {words: text for words, text in said.items() if reasons[words] not in text} == {}
