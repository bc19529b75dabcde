"""A task of Django's task framework runs if and only if the transaction commits in which it was enqueued."""

import re

from mqbroker_client import Consumer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.tellings import received_until_empty
from tests.docs.pages import page
from tests.task_backend.conftest import Project

ROW = re.compile(r"^\| `(task.*|async.*)` \| (in the transaction|sent at once|runs at once)\b.* \|$", re.MULTILINE)
WAYS = ROW.findall(page("docs/django.md").section("Each way to enqueue a task").text)


def test_each_way_of_the_page_to_enqueue_a_task_belongs_to_the_transaction(project: Project) -> None:
    enqueuing = [way for way, fate in WAYS if fate == "in the transaction"]
    assert len(enqueuing) == len(WAYS) - 2 == 5
    for way, fate in WAYS:
        project.tell("do", way, False)
        if fate == "runs at once":
            project.tell("do", way, True)
            assert project.tell("runs") == ["7"]
    for way in enqueuing:
        project.tell("do", way, True)

    with project.working():
        # One run was at once, and one task is enqueued in no transaction.
        assert project.runs(2 + len(enqueuing)) == ["7"] * (2 + len(enqueuing))


def test_the_task_of_each_committed_transaction_runs_once_and_that_of_no_other(anywhere: Project) -> None:
    with anywhere.working():
        committed, ids = anywhere.tell("orders", 9)
        runs = anywhere.runs(len(committed))

    assert sorted(runs) == sorted(committed)
    assert len(committed) == 6
    assert [anywhere.tell("result", id_) is None for id_ in ids] == [False, False, True] * 3


def test_a_result_has_the_value_the_attempts_and_the_times(anywhere: Project) -> None:
    [id_] = anywhere.tell("enqueue_by", {}, 7)
    assert anywhere.tell("result", id_)["status"] == "READY"

    with anywhere.working():
        result = anywhere.ended(id_)

    assert result == {
        "status": "SUCCESSFUL",
        "attempts": 1,
        "errors": [],
        "value": "noted 7",
        "times": [True] * 4,
        "args": [7],
        "task": "note",
    }
    assert anywhere.tell("result", "no task") is None


def test_a_task_that_fails_runs_again_and_what_it_wrote_is_rolled_back(project: Project) -> None:
    id_ = project.tell("enqueue", "fail_at_first", 1)

    with project.working():
        result = project.ended(id_)

    assert (result["status"], result["attempts"], result["value"]) == ("SUCCESSFUL", 2, 2)
    assert result["errors"] == [["RuntimeError", "RuntimeError: attempt 1 fails"]]
    assert project.tell("runs") == ["attempt 2"]


def test_after_the_last_retry_a_task_has_failed_and_is_a_dead_letter(project: Project) -> None:
    id_ = project.tell("enqueue", "fail_at_first", 99)
    wire = project.broker.wire()

    with project.working():
        result = project.ended(id_)
        letters = eventually(lambda: wire.get(f"/v1/dead-letters/{project.group}-tasks").document.get("results"))

    assert (result["status"], result["attempts"]) == ("FAILED", 3)
    assert [error for _, error in result["errors"]] == [f"RuntimeError: attempt {n} fails" for n in (1, 2, 3)]
    assert "attempt 3 fails" in letters[0]["reason"]
    assert project.tell("runs") == []


def test_a_task_that_a_task_enqueues_belongs_to_its_transaction(project: Project) -> None:
    with project.working():
        project.tell("enqueue", "place", "declined", True)
        project.tell("enqueue", "place", "accepted", False)
        assert project.runs(1) == ["accepted"]


def test_an_asynchronous_task_is_awaited_in_its_transaction(anywhere: Project) -> None:
    id_ = anywhere.tell("enqueue", "note_asynchronously", "async")

    with anywhere.working():
        result = anywhere.ended(id_)

    assert (result["status"], result["value"]) == ("SUCCESSFUL", "awaited")
    assert anywhere.tell("runs") == ["async"]


def test_a_task_runs_after_its_time(project: Project) -> None:
    with project.working("--threads", "1"):
        project.tell("enqueue_later", 4, "later")
        project.tell("enqueue", "note", "now")
        assert project.runs(2) == ["now", "later"]


def test_a_worker_prefers_the_higher_priority_and_then_the_earlier_queue(project: Project) -> None:
    orders = [("low", -5, "mail"), ("normal mail", 0, "mail"), ("normal", 0, "default"), ("high", 9, "mail")]
    for about, priority, queue in orders:
        project.tell("enqueue_by", {"priority": priority, "queue_name": queue}, f"{about} 1", f"{about} 2")

    with project.working("--threads", "1", "--queues", "default,mail"):
        runs = project.runs(8)

    wanted = ["high", "normal", "normal mail", "low"]
    assert [re.sub(r" \d", "", about) for about in runs] == [about for about in wanted for _ in range(2)]


def test_a_worker_takes_the_queues_that_it_is_given(project: Project) -> None:
    project.tell("enqueue_by", {"queue_name": "default"}, "default")
    project.tell("enqueue_by", {"queue_name": "mail"}, "mail")

    with project.working("--queues", "mail"):
        assert project.runs(1) == ["mail"]
    with project.working():
        assert project.runs(2) == ["mail", "default"]


def test_a_backend_may_name_another_database(project: Project) -> None:
    with project.working():
        project.tell("in_other", True)
        project.tell("in_other", False)
        assert project.runs(1, "other") == ["declined: False"]
    assert project.tell("runs") == []


def test_a_message_may_belong_to_a_transaction_of_a_further_database(project: Project) -> None:
    topic = characters.name("orders")

    assert [project.tell("send_in", alias, topic) for alias in ("default", "other")] == ["", ""]
    project.close()
    project.more = {"mqbroker": {"MORE_DATABASES": []}}
    refusal = project.tell("send_in", "other", topic)

    received = received_until_empty(Consumer(project.broker.client(), "audit"), topic)
    assert sorted(delivery.body for delivery in received) == [b"default", b"other"]
    assert refusal == "the database 'other' sends no messages: name it in MORE_DATABASES of MQBROKER"


def test_a_task_that_would_belong_to_no_transaction_is_refused(project: Project) -> None:
    project.close()
    project.databases = {**project.databases, "third": f"sqlite://{project.folder / 'third.sqlite3'}"}

    for backend, aliases, reason in (
        ("strict", [], r"note is enqueued in no transaction of default, other: enqueue it within .*OUTSIDE"),
        ("default", ["third"], r"enqueued in transactions of third.*: name the database in MORE_DATABASES"),
        ("default", ["default", "other"], r"enqueued in transactions of default, other.*DATABASE of the task backend"),
    ):
        assert re.search(reason, project.tell("refused", backend, *aliases))
