"""The supervisor: starts the broker's processes again when they die, and ends all of them in order."""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.processes import leftovers
from mqbroker.embedded.processes.child import Child

FIRST_DELAY_SECONDS = 0.2
MAX_DELAY_SECONDS = 10
# A child that has lived for this time is healthy: its next death counts as the first of a series.
WELL_AFTER_SECONDS = 30
# After a second Ctrl-C the processes have this time to end, which is enough for PostgreSQL's usual flush.
IMPATIENT_SECONDS = 0.5
# Logs are shortened at least once in this time.
LOG_PAUSE_SECONDS = 60


@dataclass
class Watched:
    """A child, the number of its consecutive deaths, and the time of its next start."""

    child: Child
    stage: int
    deaths: int = 0
    restart_at: float | None = None

    def died(self, now: float) -> float:
        """Counts a death; returns the delay before the next start."""
        lived = now - self.child.started_at
        self.deaths = 1 if lived >= WELL_AFTER_SECONDS else self.deaths + 1
        delay = min(FIRST_DELAY_SECONDS * 2.0 ** (self.deaths - 1), MAX_DELAY_SECONDS)
        self.restart_at = now + delay
        return delay


@dataclass
class Supervisor:
    """The children of one data folder. Children of a lower stage are stopped before children of a higher stage."""

    folder: DataFolder
    interrupts: Interrupts
    say: Callable[[str], None]
    _watched: list[Watched] = field(default_factory=list)

    def watch(self, child: Child, stage: int) -> None:
        """Supervises a child from now on; starts it unless it runs already."""
        if not child.is_running():
            child.start()
        self._watched.append(Watched(child, stage))
        self._record()

    def run(
        self, until: Callable[[], bool], pause_seconds: float = math.inf, at_most_seconds: float = math.inf
    ) -> None:
        """Runs until one of these: `until` is true (evaluated at each event and pause), the first signal, or the time
        limit.
        """
        deadline = time.monotonic() + at_most_seconds
        next_restart = self._tend()
        while not self.interrupts.count and not until() and (left := deadline - time.monotonic()) > 0:
            self.interrupts.wait(min(next_restart, pause_seconds, left, LOG_PAUSE_SECONDS))
            next_restart = self._tend()

    def deaths(self, child: Child) -> int:
        """The number of a child's consecutive deaths, each soon after the start."""
        return next(watched.deaths for watched in self._watched if watched.child is child)

    def stop(self) -> None:
        """Ends all children, stage by stage; a second signal shortens their time."""
        for stage in sorted({watched.stage for watched in self._watched}):
            children = [watched.child for watched in self._watched if watched.stage == stage]
            for child in children:
                child.ask_to_stop()
            self._wait_for(children)
        self.folder.processes.unlink(missing_ok=True)

    def _wait_for(self, children: list[Child]) -> None:
        began = time.monotonic()
        while running := [child for child in children if child.is_running()]:
            for child in running:
                limit = IMPATIENT_SECONDS if self.interrupts.count > 1 else child.stop_seconds
                if time.monotonic() - began > limit:
                    child.kill()
            self.interrupts.wait(0.1)

    def _tend(self) -> float:
        """Starts children that are due, counts deaths; returns the seconds until the next start is due."""
        now = time.monotonic()
        for watched in self._watched:
            if watched.restart_at is None and not watched.child.is_running():
                delay = watched.died(now)
                self.say(f"{watched.child.name} ended ({watched.child.exit_status}); it starts again in {delay:g} s.")
            elif watched.restart_at is not None and now >= watched.restart_at:
                self._restart(watched, now)
            watched.child.bound_log()
        due = [watched.restart_at - now for watched in self._watched if watched.restart_at is not None]
        return max(min(due, default=math.inf), 0)

    def _restart(self, watched: Watched, now: float) -> None:
        watched.restart_at = None
        try:
            watched.child.start()
        except OSError as problem:  # no memory or process slot is free; a later attempt may succeed
            delay = watched.died(now)
            self.say(f"{watched.child.name} cannot be started ({problem}); it is tried again in {delay:g} s.")
        self._record()

    def _record(self) -> None:
        with contextlib.suppress(OSError):  # a full disk should not stop a broker that runs
            leftovers.record(self.folder.processes, [watched.child for watched in self._watched])
