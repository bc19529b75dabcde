"""Firing of a schedule: each of its times is decided once, and its message is sent until it is stored.

The steps, and what they stand for:
- a process finds the schedule: `scheduling/cron/sql/find_due_schedules.sql`, `scheduling.cron.firing._decide`
- it decides: `scheduling.cron.firing.decide`, `scheduling.cron.firing._columns`,
  `scheduling/cron/sql/decide_firings.sql`
- it takes a firing: `scheduling/cron/sql/take_firings.sql`, `scheduling.cron.firing._send`
- it sends the message under the firing's id: `scheduling.cron.firing._outcome`, `scheduling.cron.firing.id_of`
- it settles the firing: `scheduling/cron/sql/settle_firings.sql`
- the operator changes the times: `scheduling.cron.registry._put`, `scheduling.cron.registry._find_next`

Bounds: one schedule with three times, and missed ones are all sent; two processes that may be killed or frozen
between any two steps; one change, which leaves the second time. A process decides one point of time ahead; a firing
that was taken is free for others after another one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

LAST_TIME = 2
AHEAD = 1
TAKEN = 1
FREE = -LAST_TIME
NEVER = LAST_TIME + AHEAD + 1
# The times by the version of the schedule.
TIMES = {0: (1, 2, 3), 1: (2,)}


class Process(NamedTuple):
    """A process of the broker: what it read of the schedule, or the firing that it has taken."""

    stage: str = "idle"
    version: int = 0
    next_at: int = 0
    now: int = 0
    firing: int = 0


class State(NamedTuple):
    """The clock, the schedule, its firings with the times at which they were taken, and the stored messages."""

    time: int = 0
    version: int = 0
    next_at: int = 1
    last_at: int = 0
    firings: tuple[tuple[int, int], ...] = ()
    stored: tuple[int, ...] = ()
    processes: tuple[Process, ...] = (Process(),) * 2
    changed_at: int | None = None
    decided: frozenset[int] = frozenset()
    fault: str | None = None

    def process(self, number: int, process: Process) -> "State":
        return self._replace(processes=(*self.processes[:number], process, *self.processes[number + 1 :]))

    def without(self, firing: int) -> tuple[tuple[int, int], ...]:
        return tuple(one for one in self.firings if one[0] != firing)


def following(version: int, after: int) -> int:
    """The first time of a version of the schedule behind a moment."""
    return min((at for at in TIMES[version] if at > after), default=NEVER)


@dataclass(frozen=True)
class Firing:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    compares_times: bool = True  # the next time with what was read
    compares_versions: bool = True
    inserts_with_the_move: bool = True  # of the schedule to its next time
    has_its_id: bool = True  # the message has the firing's id, under which it is stored once
    deletes_stored: bool = True  # and no firing before its message is stored
    knows_the_last: bool = True  # a change counts from behind the last time that was decided

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.time < LAST_TIME:
            yield "time passes", state._replace(time=state.time + 1)
        if state.changed_at is None:
            yield "the operator changes the times", self._changed(state)
        for number, process in enumerate(state.processes):
            for name, behind in self._act(state, number, process):
                yield f"process {number + 1} {name}", behind

    def _changed(self, state: State) -> State:
        behind = max(state.time, state.last_at) if self.knows_the_last else state.time
        return state._replace(version=1, next_at=following(1, behind), changed_at=state.time)

    def _act(self, state: State, number: int, process: Process) -> Iterator[tuple[str, State]]:
        if process.stage != "idle":
            yield "is killed", state.process(number, Process())
        if process.stage == "idle":
            if state.next_at <= state.time + AHEAD:
                found = Process("found", state.version, state.next_at, state.time)
                yield "finds the schedule", state.process(number, found)
            yield from self._take(state, number)
        elif process.stage == "found":
            yield "decides", self._decide(state, number, process)
        elif process.stage == "moved":
            yield "inserts the firings", self._inserted(state, process).process(number, Process())
        elif process.stage == "took":
            yield "sends the message", self._sent(state, process.firing).process(number, process._replace(stage="sent"))
        elif process.stage == "sent":
            firings = state.without(process.firing)
            yield "settles the firing", state._replace(firings=firings).process(number, Process())

    def _take(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        for firing, taken_at in state.firings:
            if taken_at == FREE or taken_at < state.time - TAKEN:
                left = state.without(firing)
                firings = tuple(sorted((*left, (firing, state.time)))) if self.deletes_stored else left
                took = state._replace(firings=firings)
                yield f"takes the firing of {firing}", took.process(number, Process("took", firing=firing))

    def _decide(self, state: State, number: int, process: Process) -> State:
        is_as_read = state.next_at == process.next_at or not self.compares_times
        if not is_as_read or (state.version != process.version and self.compares_versions):
            return state.process(number, Process())
        end = process.now + AHEAD
        fired = self._fired(process)
        moved = state._replace(next_at=following(process.version, end), last_at=max([state.last_at, *fired]))
        if self.inserts_with_the_move:
            return self._inserted(moved, process).process(number, Process())
        return moved.process(number, process._replace(stage="moved"))

    @staticmethod
    def _fired(process: Process) -> list[int]:
        return [at for at in TIMES[process.version] if process.next_at <= at <= process.now + AHEAD]

    def _inserted(self, state: State, process: Process) -> State:
        fired = self._fired(process)
        fault = state.fault
        if not state.decided.isdisjoint(fired):
            fault = "a time is decided twice"
        if process.version != state.version and self.inserts_with_the_move:
            fault = "a time is decided that the schedule does not have any more"
        there = {firing for firing, _ in state.firings}
        firings = (*state.firings, *((at, FREE) for at in fired if at not in there))
        return state._replace(firings=tuple(sorted(firings)), decided=state.decided.union(fired), fault=fault)

    def _sent(self, state: State, firing: int) -> State:
        if firing in state.stored and self.has_its_id:
            return state
        return state._replace(stored=tuple(sorted((*state.stored, firing))))

    def fault(self, state: State) -> str | None:
        if state.fault is not None:
            return state.fault
        if len(set(state.stored)) < len(state.stored):
            return "the message of a time is stored twice"
        since = -1 if state.changed_at is None else state.changed_at
        there = {firing for firing, _ in state.firings} | set(state.stored)
        times = (at for at in TIMES[state.version] if since < at < state.next_at)
        if not there.issuperset({*times, *state.decided}):
            return "a time is over without its message, and without a firing"
        return None

    def is_settled(self, state: State) -> bool:
        is_over = state.time == LAST_TIME and state.next_at > state.time and not state.firings
        # What was taken at the end is free behind the last point of time.
        waits = any(taken_at >= state.time - TAKEN for _, taken_at in state.firings)
        return (is_over or waits) and all(process.stage == "idle" for process in state.processes)


MODEL = Firing()
TWINS: Mapping[str, Firing] = {
    "a decision does not compare the next time": Firing(compares_times=False),
    "a decision does not compare versions": Firing(compares_versions=False),
    "firings are inserted behind the move of the schedule": Firing(inserts_with_the_move=False),
    "each message has an id of its own": Firing(has_its_id=False),
    "a firing is deleted as it is taken": Firing(deletes_stored=False),
    "a change does not know the last time that was decided": Firing(knows_the_last=False),
}
