"""A child that dies is started again after a growing delay; a stop ends all children, stage by stage."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.processes import identity
from mqbroker.embedded.processes.child import LOG_MAX_BYTES, Child
from mqbroker.embedded.supervisor import (
    FIRST_DELAY_SECONDS,
    MAX_DELAY_SECONDS,
    WELL_AFTER_SECONDS,
    Supervisor,
    Watched,
)
from tests.broker.polling import at_this_load
from tests.cli.conftest import Eventually


class Watch:
    """A supervisor and what it said."""

    def __init__(self, folder: DataFolder, interrupts: Interrupts) -> None:
        self.said: list[str] = []
        self.folder = folder
        self.interrupts = interrupts
        self.supervisor = Supervisor(folder, interrupts, self.said.append)

    def child(self, name: str, script: str, stage: int = 0, stop_seconds: float = 5) -> Child:
        child = Child(
            name, ["sh", "-c", script], os.environ, self.folder.log(name), self.folder.path, stop_seconds=stop_seconds
        )
        self.supervisor.watch(child, stage)
        return child


def has_said_something(child: Child) -> bool:
    return bool(child.last_lines())


@pytest.fixture
def watch(folder: DataFolder) -> Iterator[Watch]:
    with Interrupts() as interrupts:
        interrupts.hold()
        made = Watch(folder, interrupts)
        yield made
        made.supervisor.stop()


def test_a_killed_child_is_started_again_and_said_so(watch: Watch) -> None:
    child = watch.child("worker", "exec sleep 1000")
    first = child.pid
    os.kill(first, signal.SIGKILL)

    watch.supervisor.run(until=lambda: child.pid != first, at_most_seconds=10)

    assert child.is_running()
    assert watch.said == ["worker ended (signal 9); it starts again in 0.2 s."]


def test_a_killed_child_takes_its_own_children_along(watch: Watch, eventually: Eventually) -> None:
    child = watch.child("web", "sleep 1000 & echo $!; wait")
    eventually(partial(has_said_something, child))
    grandchild = int(child.last_lines())
    os.kill(child.pid, signal.SIGKILL)

    watch.supervisor.run(until=lambda: bool(watch.said), at_most_seconds=10)

    eventually(lambda: identity.of(grandchild) is None)


def test_delays_double_up_to_ten_seconds_and_begin_anew_after_a_long_life(folder: DataFolder) -> None:
    child = Child("web", ["false"], os.environ, folder.log("web"), folder.path)
    watched = Watched(child, stage=0)

    assert [watched.died(now=0) for _ in range(8)] == [
        0.2,
        0.4,
        0.8,
        1.6,
        3.2,
        6.4,
        MAX_DELAY_SECONDS,
        MAX_DELAY_SECONDS,
    ]
    assert watched.died(now=WELL_AFTER_SECONDS) == FIRST_DELAY_SECONDS


def test_stages_end_one_after_the_other(watch: Watch, eventually: Eventually, tmp_path: Path) -> None:
    order = tmp_path / "order"
    leave = "trap 'echo {name} >> {order}; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    for stage, name in enumerate(["web", "worker", "valkey"]):
        child = watch.child(name, leave.format(name=name, order=f"'{order}'"), stage)
        eventually(partial(has_said_something, child))

    watch.supervisor.stop()

    assert order.read_text().split() == ["web", "worker", "valkey"]
    assert not watch.folder.processes.exists()


def test_a_child_that_will_not_end_is_killed_when_its_time_is_over(watch: Watch, eventually: Eventually) -> None:
    child = watch.child("web", "trap '' TERM; echo ready; while :; do sleep 0.05; done", stop_seconds=0.3)
    eventually(partial(has_said_something, child))
    began = time.monotonic()

    watch.supervisor.stop()

    assert child.exit_status == "signal 9"
    # Not at once, and not after the 5 s that others have.
    assert 0.3 <= time.monotonic() - began < at_this_load(4)


def test_a_second_signal_ends_the_patience(watch: Watch, eventually: Eventually) -> None:
    child = watch.child("web", "trap '' TERM; echo ready; while :; do sleep 0.05; done", stop_seconds=60)
    eventually(partial(has_said_something, child))
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)

    watch.supervisor.stop()

    assert child.exit_status == "signal 9"


def test_a_log_is_bounded_while_its_process_writes_on(watch: Watch, eventually: Eventually) -> None:
    flood = f"yes 'a line of a log' | head -c {3 * LOG_MAX_BYTES}"
    child = watch.child("web", f"{flood}; echo 'the last line'; exec sleep 1000")
    eventually(lambda: b"the last line" in child.log.read_bytes()[-100:])

    watch.supervisor.run(until=lambda: child.log.stat().st_size == 0, at_most_seconds=10)

    assert child.is_running()
    earlier = child.log.with_suffix(".log.1")
    assert earlier.stat().st_size == LOG_MAX_BYTES
    assert earlier.read_bytes().endswith(b"the last line\n")


def test_running_processes_are_written_down_for_the_next_start(watch: Watch) -> None:
    child = watch.child("worker", "exec sleep 1000")

    assert f'"pid": {child.pid}' in watch.folder.processes.read_text()
