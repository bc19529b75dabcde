"""What an operator is told of a move that was stopped at each of its steps, or waits: everywhere the same sentence."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest
from mqbroker_client import Admin

from console.cells import steps
from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import characters, forks, metrics
from tests.broker.polling import eventually
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.console.conftest import ada_at
from tests.console.operators import Operator
from tests.moves.ground import Ground

STOPPED = "its run has ended before the move was done"
FINISHES, TAKES_BACK = "`manage.py cells resume` finishes it", "`manage.py cells undo` takes it back"
# From here on the fence stands until a run ends it, and up to here the source has the topics.
FENCED = (steps.PROMOTING, steps.PROMOTED, steps.DIVIDED)


@pytest.fixture(scope="module")
def ada(ground: Ground, broker: RunningBroker) -> Operator:
    """An admin who is signed in."""
    return ada_at(broker)


@pytest.fixture
def homes(ground: Ground, broker: RunningBroker) -> Sequence[str]:
    """A topic that moves, and one that stays."""
    ground.cells("open", "c1")
    names = [characters.name(word) for word in ("moving", "staying")]
    for name in names:
        Admin(broker.client()).create_topic(name, queues=1)
    return names


def split(ground: Ground, home: str, *more: str) -> list[str]:
    """The words of a split into a new cell."""
    url = url_in(ground.standby(), "mqbroker_c1")
    return ["split", "c1", "--into", characters.name("c"), "--standby", url, "--home", home, *more]


def doctor(ground: Ground) -> tuple[int, str]:
    """The exit code of `manage.py doctor`, and what it says."""
    done = forks.run(commands.manage("doctor"), ground.broker.environment)
    return done.returncode, done.stdout


def untold(ground: Ground, ada: Operator, named: str, step: str, *said: str) -> dict[str, str]:
    """The places that do not tell of a move its name, its step, its reason and what ends it, with what they tell.

    The doctor must tell it as a failure, by its exit code.
    """
    warnings = " ".join(ground.broker.wire().get("/readyz").document["warnings"])
    code, examined = doctor(ground)
    told = {"list": ground.cells("list"), "page": ada.sees("cells/").text, "readiness": warnings}
    told["doctor"] = examined if code == 1 else f"exit code {code}"
    told["overview"] = ada.sees("").text
    return {place: text for place, text in told.items() if not all(word in text for word in (named, step, *said))}


def seconds(broker: RunningBroker, named: str) -> set[str]:
    """The steps of the moves that the alert sees."""
    return {name[2] for name in metrics.read(broker.url) if name[:2] == ("mqbroker_move_seconds", named)}


def refused(broker: RunningBroker, topic: str) -> str:
    """With what a message is refused; empty where it is stored."""
    answer = broker.wire().post("/v1/messages", {"topic": topic, "body": "x"})
    return "" if answer.status == 201 else str(answer.problem["detail"])


def is_stored(broker: RunningBroker, topic: str) -> bool:
    return refused(broker, topic) == ""


def is_refused_with(broker: RunningBroker, topic: str, *said: str) -> bool:
    detail = refused(broker, topic)
    return all(word in detail for word in said)


def test_a_split_that_was_stopped_at_a_step_is_told_everywhere_with_its_reason_and_what_ends_it(
    ground: Ground, broker: RunningBroker, ada: Operator, homes: Sequence[str]
) -> None:
    words = split(ground, homes[0])
    named = f"c1 into {words[3]}"

    for step in (steps.FENCED, steps.REPLAYED, *FENCED, steps.OPENED):
        ground.kill_after(step, *words)
        words = ["resume"]
        ends = [FINISHES, TAKES_BACK] if step in steps.BEFORE_THE_MAP else [FINISHES]

        assert untold(ground, ada, named, step, STOPPED, *ends) == {}
        assert seconds(broker, named) == {step}
        if step in FENCED:
            # Of the topic that stays: the other one may lie in the new cell.
            eventually(partial(is_refused_with, broker, homes[1], named, step, STOPPED, *ends), within_seconds=10)
        else:
            eventually(partial(is_stored, broker, homes[1]), within_seconds=30)
    ground.cells("resume")

    for topic in homes:
        eventually(partial(is_stored, broker, topic), within_seconds=20)
    assert "move:" not in ground.cells("list")


def test_a_split_whose_undo_was_stopped_is_told_with_the_undo_alone(
    ground: Ground, broker: RunningBroker, ada: Operator, homes: Sequence[str]
) -> None:
    words = split(ground, homes[0])
    named = f"c1 into {words[3]}"
    ground.kill_after(steps.PROMOTED, *words)
    ground.kill_after(steps.UNDOING, "undo")

    assert untold(ground, ada, named, steps.UNDOING, STOPPED, TAKES_BACK) == {}
    _, examined = doctor(ground)
    assert FINISHES not in examined + ground.cells("list")
    assert seconds(broker, named) == {steps.UNDOING}
    ground.cells("undo")

    for topic in homes:
        eventually(partial(is_stored, broker, topic), within_seconds=20)
    assert "move:" not in ground.cells("list")


@contextmanager
def waiting(ground: Ground, words: Sequence[str]) -> Iterator[None]:
    """A split that waits within the block until its standby is promoted by hand."""
    command = commands.manage("cells", *words)
    with subprocess.Popen(
        command, env=ground.broker.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while "Promote the standby of " not in process.stdout.readline():
            assert process.poll() is None
        yield
        process.kill()


def test_a_split_that_waits_for_a_promotion_by_hand_is_told_as_that(
    ground: Ground, broker: RunningBroker, ada: Operator, homes: Sequence[str]
) -> None:
    words = split(ground, homes[0], "--promote-by-hand")
    said = (f"c1 into {words[3]}", steps.PROMOTING, "it waits until the standby is promoted by hand", TAKES_BACK)

    with waiting(ground, words):
        untold_of = untold(ground, ada, *said)
        eventually(partial(is_refused_with, broker, homes[1], *said), within_seconds=10)
        change = broker.wire().call("PUT", f"/v1/topics/{homes[1]}", b'{"queues": 4}')
    ground.cells("undo")

    assert untold_of == {}
    assert change.status == 503
    assert all(word in change.problem["detail"] for word in said)
    eventually(partial(is_stored, broker, homes[1]), within_seconds=20)


def test_a_control_that_is_fenced_is_no_read_only_server(
    ground: Ground, broker: RunningBroker, ada: Operator, homes: Sequence[str]
) -> None:
    ground.cells("open", "c0")
    moving = characters.name("moving")
    Admin(broker.client()).create_topic(moving, queues=1)
    url = url_in(ground.standby(), "mqbroker")
    target = characters.name("c")

    ground.kill_after(steps.PROMOTING, "split", "c0", "--into", target, "--standby", url, "--home", moving)
    said = (f"c0 into {target}", steps.PROMOTING, STOPPED, FINISHES, TAKES_BACK)
    untold_of = untold(ground, ada, *said)
    eventually(partial(is_refused_with, broker, moving, *said), within_seconds=10)
    warnings, examined = broker.wire().get("/readyz").document["warnings"], doctor(ground)[1]
    ground.cells("undo")

    assert untold_of == {}
    assert "read-only" not in " ".join(warnings) + examined
    eventually(partial(is_stored, broker, moving), within_seconds=20)


# The last one: c1 lies on another server behind it.
def test_a_whole_cell_that_was_stopped_behind_the_map_takes_writes_and_is_told_without_a_fence(
    ground: Ground, broker: RunningBroker, ada: Operator, homes: Sequence[str]
) -> None:
    url = url_in(ground.standby(), "mqbroker_c1")

    for step, words in ((steps.PROMOTED, ["move", "c1", "--standby", url]), (steps.DIVIDED, ["resume"])):
        ground.kill_after(step, *words)
        assert untold(ground, ada, "c1 into c1", step, STOPPED, FINISHES) == {}
        assert ("c1 takes no writes meanwhile" in doctor(ground)[1]) is (step == steps.PROMOTED)
    eventually(partial(is_stored, broker, homes[1]), within_seconds=20)
    ground.cells("resume")

    assert "move:" not in ground.cells("list")
