"""Split and undo of a cell: topics leave a source for a promoted standby, while writers write to one of these topics.

The steps, and what they stand for:
- fence: `console.cells.moving.Run._fence`, `store/sql/fence_cell.sql`, `store.db.fences.close`
- the sessions of before are ended: `store.cells.sides.Side.oust`, `store/sql/oust_sessions.sql`
- a fence whose time is over is ended: `store.db.fences.heed`, `store/sql/lift_fence.sql`
- replay, hold, depart: `console.cells.moving.Run._replay`, `store/sql/hold_fence.sql`, `store.cells.sides.Side.depart`
- promote, divide, open: `console.cells.moving.Run._promote`, `console.cells.moving.Run._divide`,
  `console.cells.moving.Run._open`,
  `console.cells.dividing.open_source`, `store/sql/lift_fence.sql`
- a note of a step: `console.cells.moves.note`, `console.cells.moves._update`
- a run that is refused takes back: `console.cells.moving.Run.finish`, `console.cells.moving.Run.take_back`,
  `console.cells.dividing.take_back`
- a second run takes over: `console.cells.moves.taken_over`, `console.cells.moving.taken_over`;
  a run connects to the source:
  `console.cells.moving.Run._side`, `console.cells.moves.require_holder`, `store.cells.sides.Side.take_over`
- a writer looks up, connects, commits: `store.db.routing.connect`, `store.commit.moved.open_to`,
  `store.db.fences.guard`

Bounds: one moved topic; a writer, or two, of one message each, which may be stopped between any two steps; a run that
may be killed or frozen between any two steps; one second run, by `cells undo` or `cells resume`, at any time. The
standby has what the source had committed when its position was read, and nothing more.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from console.cells import steps

PROGRAM = (
    *("fences", "ousts", "notes fenced", "reads the position", "notes replayed", "holds the fence"),
    *("notes promoting", "promotes", "notes promoted", "divides", "opens the source", "notes opened", "notes done"),
)
NOTED = {"notes fenced": steps.FENCED, "notes replayed": steps.REPLAYED, "notes promoting": steps.PROMOTING}
NOTED |= {"notes promoted": steps.PROMOTED, "notes opened": steps.OPENED, "notes done": steps.DONE}
# Where a run goes on that finds the move at a step.
RESUMED = {steps.PREPARED: "fences", steps.FENCED: "fences", steps.REPLAYED: "fences", steps.PROMOTING: "promotes"}
RESUMED |= {steps.PROMOTED: "divides", steps.DIVIDED: "opens the source", steps.OPENED: "notes done"}
STOPPED = "stopped"
AT_THE_SOURCE = ("fences", "ousts", "reads the position", "holds the fence", "opens the source", "takes back")


class Run(NamedTuple):
    """A run of the move. `fenced`: the fence that stands is its own. `session`: where its session at the source is."""

    at: str
    fenced: bool = False
    session: str = "none"


class Session(NamedTuple):
    """A writer's session at the source; `map` is 0 until it is in the list of sessions and has read the map."""

    is_read_only: bool
    map: int = 0


class Writer(NamedTuple):
    """A writer of one message; `map` is the version of the map that its request was routed by, 0 for none yet."""

    map: int = 0
    session: Session | None = None
    is_done: bool = False


class State(NamedTuple):
    """The control, the source, the standby, the runs and the writers. The source has acknowledged `acked` messages."""

    step: str = steps.PREPARED
    holder: int = 0
    map: int = 1
    is_read_only: bool = False
    fence: str = ""
    has_guard: bool = False
    is_purged: bool = False
    acked: int = 0
    replayed: int = 0
    runs: tuple[Run, ...] = (Run(PROGRAM[0]),)
    writers: tuple[Writer, ...] = ()

    def run(self, number: int, **fields: Any) -> "State":
        runs = list(self.runs)
        runs[number] = runs[number]._replace(**fields)
        return self._replace(runs=tuple(runs))

    def writer(self, number: int, **fields: Any) -> "State":
        writers = list(self.writers)
        writers[number] = writers[number]._replace(**fields)
        return self._replace(writers=tuple(writers))

    def unfenced(self, **fields: Any) -> "State":
        """The fence is ended: the epoch is another one, so that no run finds its own fence any more."""
        runs = tuple(run._replace(fenced=False) for run in self.runs)
        return self._replace(fence="", is_read_only=False, runs=runs, **fields)


@dataclass(frozen=True)
class Split:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    writers: int = 1
    compares_versions: bool = True  # the map of a session with the map that a request was routed by
    has_guard: bool = True  # the constraint that refuses messages of a topic that has left
    awaits_beginning: bool = True  # sessions that have read the settings and are in no list yet
    reads_behind: bool = True  # the source's position, once the sessions are ended
    holds_its_own: bool = True  # looks at the epoch: the fence may have been ended meanwhile
    compares_holders: bool = True  # at each note
    takes_over_first: bool = True  # reads how far the move has come behind that
    looks_at_holders: bool = True  # once a run has connected to the source, and so ended other runs' sessions
    purges: bool = True  # the source, in the transaction that ends its fence

    def first(self) -> State:
        return State(writers=(Writer(),) * self.writers)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for number, run in enumerate(state.runs):
            for name, following in self._run(state, number, run):
                yield f"run {number + 1} {name}", following
        if len(state.runs) == 1 and state.step not in (steps.DONE, steps.UNDONE):
            yield from self._second_run(state)
        if state.fence == "timed":
            yield "a process ends the fence, whose time is over", state.unfenced()
        for number, writer in enumerate(state.writers):
            for name, following in self._write(state, number, writer):
                yield f"writer {number + 1} {name}", following

    def _second_run(self, state: State) -> Iterator[tuple[str, State]]:
        holder = 1 if self.takes_over_first else state.holder
        # A move that is being undone is never finished.
        kinds = {} if state.step == steps.UNDOING else {"resume": RESUMED[state.step]}
        if state.step in steps.BEFORE_THE_MAP:
            kinds["undo"] = "notes undoing"
        for kind, at in kinds.items():
            second = Run(at if self.takes_over_first else f"holds, then {at}")
            yield f"run 2 begins, to {kind}", state._replace(holder=holder, runs=(*state.runs, second))

    def _run(self, state: State, number: int, run: Run) -> Iterator[tuple[str, State]]:
        if run.at.startswith("holds, then "):
            held = state._replace(holder=number)
            yield "sets the holder", held.run(number, at=run.at.removeprefix("holds, then "))
            return
        if run.at in AT_THE_SOURCE and run.session != "there":
            yield from self._connect(state, number, run)
        elif run.at in ("notes undoing", "takes back", "notes undone", STOPPED):
            yield from self._undo(state, number, run)
        else:
            program = list(PROGRAM)
            if not self.reads_behind:
                program[1:4] = reversed(program[1:4])
            following = [*program, STOPPED][program.index(run.at) + 1]
            yield from ((run.at, done.run(number, at=following)) for done in self._does(state, number, run))
            if run.at in PROGRAM[:7]:
                yield "is refused", state.run(number, at="notes undoing")

    def _connect(self, state: State, number: int, run: Run) -> Iterator[tuple[str, State]]:
        """A run that connects to the source ends other runs' sessions there, then looks whether it holds the move."""
        if run.session == "none":
            for other, each in enumerate(state.runs):
                if each.session != "none":
                    state = state.run(other, session="ended")
            yield "connects to the source", state.run(number, session="new")
        elif run.session == "new":
            if state.holder == number or not self.looks_at_holders:
                yield "works at the source", state.run(number, session="there")
            else:
                yield "finds that another run has taken over", state.run(number, at=STOPPED)

    def _does(self, state: State, number: int, run: Run) -> Iterator[State]:
        """The state behind the step of a run, none where it cannot be done now."""
        is_holder = state.holder == number or not self.compares_holders
        if run.at in NOTED and is_holder:
            yield state._replace(step=NOTED[run.at])
        elif run.at == "divides" and is_holder:
            yield state._replace(map=2, step=steps.DIVIDED)
        elif run.at == "promotes":
            yield state
        elif run.at in AT_THE_SOURCE:
            yield from self._does_at_the_source(state, number, run)

    def _does_at_the_source(self, state: State, number: int, run: Run) -> Iterator[State]:
        if run.at == "fences":
            fenced = state.unfenced()._replace(fence="timed", is_read_only=True)
            yield fenced.run(number, fenced=True)
        elif run.at == "ousts":
            yield from self._oust(state)
        elif run.at == "reads the position":
            yield state._replace(replayed=state.acked)
        elif run.at == "holds the fence":
            if (run.fenced and state.fence) or not self.holds_its_own:
                yield state._replace(fence="held", has_guard=self.has_guard)
        elif run.at == "opens the source":
            yield state.unfenced(is_purged=state.is_purged or self.purges)

    def _oust(self, state: State) -> Iterator[State]:
        """Ends the sessions that write; none where one of them is about to begin, which is waited for."""
        sessions = [writer.session for writer in state.writers]
        if self.awaits_beginning and any(one and not one.is_read_only and not one.map for one in sessions):
            return
        for number, session in enumerate(sessions):
            if session is not None and not session.is_read_only and session.map:
                state = state.writer(number, session=None)
        yield state

    def _undo(self, state: State, number: int, run: Run) -> Iterator[tuple[str, State]]:
        is_holder = state.holder == number or not self.compares_holders
        if run.at == "notes undoing" and is_holder:
            yield "notes undoing", state._replace(step=steps.UNDOING).run(number, at="takes back")
        elif run.at == "takes back":
            yield "takes back", state.unfenced(has_guard=False).run(number, at="notes undone")
        elif run.at == "notes undone" and is_holder:
            yield "notes undone", state._replace(step=steps.UNDONE).run(number, at=STOPPED)

    def _write(self, state: State, number: int, writer: Writer) -> Iterator[tuple[str, State]]:
        session = writer.session
        if writer.is_done:
            return
        if not writer.map:
            yield "looks up the topic", state.writer(number, map=state.map)
        if session is None:
            yield "begins a session", state.writer(number, session=Session(state.is_read_only))
        elif not session.map:
            yield "has its session", state.writer(number, session=session._replace(map=state.map))
        if writer.map == 2:
            yield "writes to the new cell", state.writer(number, map=0, session=None, is_done=True)
        elif writer.map == 1 and session is not None and session.map:
            if (self.compares_versions and session.map > 1) or state.has_guard:
                yield "is routed again", state.writer(number, map=0)
            elif session.is_read_only:
                yield "is refused, as the source is read only", state.writer(number, map=0, session=None)
            else:
                done = state.writer(number, map=0, session=None, is_done=True)
                yield "commits at the source", done._replace(acked=state.acked + 1)

    def fault(self, state: State) -> str | None:
        if state.map == 2 and state.acked > state.replayed:
            return "an acknowledged message is lost: the new cell does not have it"
        if state.map == 2 and state.step in (*steps.BEFORE_THE_MAP, steps.UNDONE):
            return "the move is noted as undone, or as not divided, and the map names the new cell"
        if state.map == 2 and not state.is_read_only and not state.is_purged:
            return "both cells work on the half messages and deliveries of the moved topic"
        return None

    def is_settled(self, state: State) -> bool:
        if state.runs[-1].session == "ended":
            # A third run is beyond the bounds.
            return True
        is_over = state.step in (steps.DONE, steps.UNDONE) and not state.is_read_only and not state.fence
        return is_over and all(writer.is_done for writer in state.writers)


MODEL = Split()
TWO_WRITERS = Split(writers=2)
TWINS: Mapping[str, Split] = {
    "nothing refuses a writer with an old map": Split(compares_versions=False, has_guard=False),
    "a session that is about to begin is not waited for": Split(awaits_beginning=False),
    "the position of the source is read before its sessions are ended": Split(reads_behind=False),
    "a run does not look whether the fence is its own": Split(holds_its_own=False),
    "a run notes a step that another run works at": Split(compares_holders=False),
    "a second run reads the move before it takes the move over": Split(takes_over_first=False),
    "a run that reaches the source late does not look who holds the move": Split(looks_at_holders=False),
    "the source is not purged with the end of its fence": Split(purges=False),
}
