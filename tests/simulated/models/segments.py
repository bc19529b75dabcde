"""Segments: rolled, dropped, and what must outlive them: bodies that rows need, entries, unreleased levels, progress.

The steps, and what they stand for:
- roll: `store.segments.lifecycle.roll`, `store.segments.log.exclusive`, `store/sql/hold_log.sql`,
  `store/sql/turn_segment.sql`
- a batch joins the log: `store.segments.log.join`, `store/sql/share_lock.sql`, `store/sql/open_segment.sql`
- publish: `scheduling.publish.publish_all`, `store.commit.reappend.near`, `store/sql/append_again.sql`,
  `store/sql/find_again.sql`; what is taken for it: `scheduling/sql/take_timers.sql`, `scheduling.release._level`
- reappend: `scheduling.reappend.TimerReappend._move`, `scheduling/sql/lock_old_timers.sql`,
  `scheduling/sql/move_timers.sql`, `store/sql/find_leaving_segment.sql`
- retention: `store.segments.retention.drop_old`, `store.segments.retention._drop_queues`,
  `store.segments.retention._carry_positions`, `store.segments.retention._drop_log`,
  `store/sql/find_expiring_segments.sql`, `store/sql/find_unreleased.sql`, `store/sql/carry_positions.sql`,
  `store.segments.partitions.holders_of_log`

Bounds: four segments; one message in the first one, which a timer needs, or the entry of a delay level; a batch that
publishes it, a batch that reappends it, a batch that reads where it is and then its body; a reader that moves twice.
Each batch may be rolled back before its commit. The time of each closed segment is over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

SEGMENTS = 4
MOVES = 2
PUBLISHER, MOVER, READER = range(3)
NAMES = ("publisher", "reappend", "reader")
TIMER, LEVEL = "timer", "level"


class Batch(NamedTuple):
    """A batch under way: its segment, 0 while it is none; the segment in which it has found the body; and its stage."""

    segment: int = 0
    body: int = 0
    stage: str = ""


class State(NamedTuple):
    """The segments by number. `holder` needs the body in the segment `at`; `entries` are (own, body) segments."""

    open: int = 1
    queues_dropped: int = 0
    log_dropped: int = 0
    holder: str = TIMER
    at: int = 1
    bodies: frozenset[int] = frozenset({1})
    entries: frozenset[tuple[int, int]] = frozenset()
    progress: frozenset[tuple[int, int]] = frozenset({(1, 0)})
    moves: int = 0
    batches: tuple[Batch, ...] = (Batch(),) * len(NAMES)
    keeper: str = ""
    carries: tuple[int, int] | None = None
    fault: str | None = None

    def batch(self, number: int, batch: Batch) -> "State":
        return self._replace(batches=(*self.batches[:number], batch, *self.batches[number + 1 :]))

    @property
    def is_locked(self) -> bool:
        """Whether the row of the timer, or the progress of the level, is locked by a batch."""
        return any(batch.stage in ("took", "appended") for batch in self.batches)

    @property
    def is_free(self) -> bool:
        """Whether no batch is under way: what holds the log alone waits for that."""
        return not any(batch.segment for batch in self.batches)


@dataclass(frozen=True)
class Segments:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    holder: str = TIMER
    roll_waits: bool = True  # for the batches under way
    appends_far: bool = True  # what lies further back than the segment before the open one
    looks_for_holders: bool = True  # before a log is dropped
    drop_waits: bool = True  # for the batches that were under way at that look
    queues_first: bool = True  # the queues of a segment go before the log of the segment before it
    awaits_levels: bool = True  # that are not released
    carries: bool = True  # the newest moves of a segment that goes

    def first(self) -> State:
        return State(holder=self.holder)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.open < SEGMENTS and (state.is_free or not self.roll_waits):
            yield "the segment is rolled", state._replace(open=state.open + 1)
        if state.moves < MOVES:
            move = state.moves + 1
            yield "the group moves", state._replace(progress=state.progress | {(state.open, move)}, moves=move)
        for number, name in enumerate(NAMES):
            yield from ((f"{name} {step}", following) for step, following in self._batch(state, number))
        yield from self._drop_queues(state)
        yield from self._drop_log(state)

    def _batch(self, state: State, number: int) -> Iterator[tuple[str, State]]:
        batch = state.batches[number]
        if not batch.segment:
            if state.holder and (number != MOVER or self._is_leaving(state)):
                yield "joins the log", state.batch(number, Batch(state.open, stage="joined"))
            return
        yield "is rolled back", state.batch(number, Batch())
        if batch.stage == "joined":
            yield from self._take(state, number, batch)
        elif batch.stage == "took":
            yield "reads the body", self._append(state, number, batch)
        elif batch.stage == "appended":
            yield "commits", self._commit(state, number, batch).batch(number, Batch())

    @staticmethod
    def _is_leaving(state: State) -> bool:
        """Whether the body's segment is the one that is dropped next, or older: its rows are reappended."""
        return state.holder == TIMER and state.at <= state.queues_dropped - 1

    def _take(self, state: State, number: int, batch: Batch) -> Iterator[tuple[str, State]]:
        if number == READER:
            if state.holder:
                yield "reads where the body is", state.batch(number, batch._replace(body=state.at, stage="read"))
        elif state.holder and not state.is_locked and (number == PUBLISHER or self._is_leaving(state)):
            yield "locks the row", state.batch(number, batch._replace(body=state.at, stage="took"))

    def _append(self, state: State, number: int, batch: Batch) -> State:
        """The body is near enough, or is appended again to the batch's segment."""
        if number == PUBLISHER and (batch.body >= batch.segment - 1 or not self.appends_far):
            return state.batch(number, batch._replace(stage="appended"))
        if batch.body not in state.bodies:
            return state._replace(fault="a batch finds the body gone that is to be appended again")
        return state.batch(number, batch._replace(body=batch.segment, stage="appended"))

    def _commit(self, state: State, number: int, batch: Batch) -> State:
        # A body that is already there is not appended.
        bodies = state.bodies | ({batch.segment} if batch.body == batch.segment else frozenset())
        if number == MOVER:
            return state._replace(at=batch.body, bodies=bodies)
        entries = state.entries | {(batch.segment, batch.body)}
        return state._replace(holder="", at=0, bodies=bodies, entries=entries)

    def _drop_queues(self, state: State) -> Iterator[tuple[str, State]]:
        """The queues of the oldest segment, with its part of the progress."""
        going = state.queues_dropped + 1
        if going >= state.open:
            return
        if state.keeper == "":
            if self.awaits_levels and state.holder == LEVEL and going == 1:
                return
            newest = max((move for segment, move in state.progress if segment == going), default=None)
            is_newest = all(segment <= going for segment, _ in state.progress)
            carried = (state.open, newest) if self.carries and newest is not None and is_newest else None
            yield "retention reads the moves that go", state._replace(keeper="carries", carries=carried)
        elif state.keeper == "carries":
            progress = frozenset(one for one in state.progress if one[0] != going)
            entries = frozenset(one for one in state.entries if one[0] != going)
            if state.carries is not None:
                progress |= {state.carries}
            dropped = state._replace(queues_dropped=going, progress=progress, entries=entries, carries=None, keeper="")
            if state.holder == LEVEL and going == 1:
                dropped = dropped._replace(fault="an entry of a delay level is dropped before its release")
            yield "retention drops the queues", dropped

    def _drop_log(self, state: State) -> Iterator[tuple[str, State]]:
        """The log of the segment before the oldest one that still has queues."""
        going = state.log_dropped + 1
        if going >= state.open or (self.queues_first and going + 1 > state.queues_dropped):
            return
        if state.keeper == "" and not (self.looks_for_holders and state.holder == TIMER and state.at <= going):
            yield "retention finds no row that needs the log", state._replace(keeper="looked")
        elif state.keeper == "looked" and (state.is_free or not self.drop_waits):
            yield "retention holds the log alone", state._replace(keeper="held")
        elif state.keeper == "held":
            bodies = state.bodies - {going}
            yield "retention drops the log", state._replace(log_dropped=going, bodies=bodies, keeper="")

    def fault(self, state: State) -> str | None:
        if state.fault is not None:
            return state.fault
        if state.holder and state.at not in state.bodies:
            return "a row needs a body that is gone"
        if any(body not in state.bodies for _, body in state.entries):
            return "an entry has no message"
        if any(own - body not in (0, 1) for own, body in state.entries):
            return "an entry points further back than into the segment before its own"
        if any(batch.stage == "read" and batch.body not in state.bodies for batch in state.batches):
            return "a batch has read where a body is, and it is gone"
        if max((move for _, move in state.progress), default=0) < state.moves:
            return "a group's newest move is lost"
        return None

    def is_settled(self, state: State) -> bool:
        return not state.holder and state.is_free and state.open == SEGMENTS and state.log_dropped >= SEGMENTS - 2


MODEL = Segments()
LEVELS = Segments(LEVEL)
TWINS: Mapping[str, Segments] = {
    "a roll does not wait for the batches under way": Segments(roll_waits=False),
    "a body that lies far back is not appended again": Segments(appends_far=False),
    "a log is dropped without a look for rows that need it": Segments(looks_for_holders=False),
    "a log is dropped beside a batch that was under way": Segments(drop_waits=False),
    "a log is dropped before the queues of the segment behind it": Segments(queues_first=False),
    "queues are dropped with entries of levels that wait": Segments(LEVEL, awaits_levels=False),
    "queues are dropped with the newest moves": Segments(carries=False),
}
