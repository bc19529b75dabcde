"""One decision of a transaction: its ends, a check, discards, and an operator race for the row of its half message.

The steps, and what they stand for:
- begin: `transactions/sql/begin_halves.sql`
- a pipelined end: `transactions.operations.end.End.ready`, `transactions/sql/end_free_halves.sql`
- a stepwise end looks, waits, locks the row: `transactions.operations.end.End.write`,
  `transactions/sql/end_halves.sql`
- an end commits: `transactions.operations.judging.operation`, `transactions/sql/insert_operations.sql`
- an end that ended nothing is answered, or written again: `transactions.operations.judging.answer`,
  `transactions.operations.judging._answer_to`, `transactions.operations.judging._answer_state`
- the check claims: `transactions/sql/claim_halves.sql`; it answers: `transactions.checks.outcomes.apply`,
  `transactions/sql/postpone_checks.sql`
- a worker finds and discards: `transactions/sql/find_exhausted.sql`, `transactions/sql/discard_halves.sql`,
  `transactions.discards.Discard.write`
- the operator resumes: `transactions/sql/resume_halves.sql`, `transactions.discards.Resume.write`; asks for a check:
  `transactions/sql/check_now.sql`; resolves: `transactions.discards.resolve`

Bounds: one half message, which is discarded after one check; a producer that commits, a second producer and a check
that roll back; two workers that discard; an operator that resumes once, asks for one check and rolls back. Ends may
be repeated, and each transaction may be rolled back before its commit. A statement that waited for a row's lock looks
at the newest row, as under READ COMMITTED.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

MAX_CHECKS = 1
PRODUCER, RIVAL, CHECK, OPERATOR = "producer", "second producer", "check", "operator"
# What each of them decides; whether it decides discarded half messages (True) or pending ones.
DECISIONS = {PRODUCER: "COMMIT", RIVAL: "ROLLBACK", CHECK: "ROLLBACK", OPERATOR: "ROLLBACK"}
OF_DISCARDED = {PRODUCER: False, RIVAL: False, CHECK: False, OPERATOR: True}
WORKERS = ("worker 1", "worker 2")
IDLE = "idle"
ALL_IDLE = tuple((actor, IDLE) for actor in (*DECISIONS, *WORKERS))


class Half(NamedTuple):
    """The committed row of the half message."""

    is_discarded: bool = False
    checks: int = 0
    is_exhausted: bool = False


class State(NamedTuple):
    """The database, and how far each actor is. `fault` is what a step did that no step may do."""

    is_begun: bool = False
    half: Half | None = None
    lock: str = ""
    operations: tuple[str, ...] = ()
    entries: int = 0
    stages: tuple[tuple[str, str], ...] = ALL_IDLE
    may_resume: bool = True
    may_check_now: bool = True
    fault: str | None = None

    def stage(self, actor: str) -> str:
        return dict(self.stages)[actor]

    def at(self, actor: str, stage: str) -> "State":
        return self._replace(stages=tuple((one, stage if one == actor else was) for one, was in self.stages))

    @property
    def decisions(self) -> list[str]:
        return [one for one in self.operations if one in ("COMMIT", "ROLLBACK")]


@dataclass(frozen=True)
class OneDecision:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    looks_again: bool = True  # at the newest row, once the lock of a row is free
    records_with_the_delete: bool = True
    is_overtaken: bool = True  # an end that found nothing and then reads a pending half message is written again
    leaves_discarded_out: bool = True  # of a pipelined batch
    discards_exhausted_only: bool = True  # looks again at what made a worker choose the half message

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if not state.is_begun:
            yield "begin", state._replace(is_begun=True, half=Half())
        for actor, stage in state.stages:
            steps = self._worker(state, actor, stage) if actor in WORKERS else self._end(state, actor, stage)
            yield from ((f"{actor} {step}", following) for step, following in steps)
        if (half := state.half) is not None and not state.lock:
            yield from self._others(state, half)

    def _others(self, state: State, half: Half) -> Iterator[tuple[str, State]]:
        """The claim of a check, and what an operator does with an undecided transaction but resolve it."""
        if state.stage(CHECK) == IDLE and not half.is_discarded and not half.is_exhausted:
            yield "check claims and asks", state.at(CHECK, "asked")
        if state.stage(OPERATOR) == IDLE and half.is_discarded and state.may_resume:
            resumed = state._replace(half=Half(), operations=(*state.operations, "RESUME"), may_resume=False)
            yield "operator resumes", resumed
        if state.stage(OPERATOR) == IDLE and not half.is_discarded and state.may_check_now:
            checked = state._replace(half=half._replace(is_exhausted=False), may_check_now=False)
            yield "operator asks for a check", checked

    def _end(self, state: State, actor: str, stage: str) -> Iterator[tuple[str, State]]:
        if stage == IDLE and actor in (PRODUCER, RIVAL):
            yield from self._pipelined(state, actor)
        elif stage == IDLE and actor == OPERATOR and state.is_begun:
            yield "resolves", state.at(actor, "stepwise")
        elif stage == "asked":
            yield "answers with its decision", state.at(actor, "stepwise")
            if state.half is None or state.half.is_discarded or not state.lock:
                yield "answers UNKNOWN", self._postponed(state).at(actor, IDLE)
        elif stage in ("stepwise", "free", "waits", "waits in its pipeline"):
            yield from self._statement(state, actor, stage)
        elif stage == "holds":
            yield "is rolled back", state._replace(lock="").at(actor, "stepwise")
            yield "commits", self._ended(state, actor)
        elif stage == "unrecorded":
            yield "records its operation", self._recorded(state.at(actor, IDLE), actor)
        elif stage == "missed":
            yield "is answered", self._answered(state, actor)

    def _statement(self, state: State, actor: str, stage: str) -> Iterator[tuple[str, State]]:
        """The statement of an end: its snapshot, then the lock of the row that the snapshot has."""
        is_mine = self._is_mine(state.half, actor)
        if stage == "stepwise":
            yield "looks", state.at(actor, "missed" if not is_mine else "waits" if state.lock else "free")
        elif state.lock:
            if stage == "free":
                yield "waits for the lock", state.at(actor, "waits")
        elif is_mine or (not self.looks_again and stage == "waits"):
            yield "locks the row", state._replace(lock=actor).at(actor, "holds")
        else:
            yield "finds the row gone", state.at(actor, "stepwise" if stage == "waits in its pipeline" else "missed")

    def _pipelined(self, state: State, actor: str) -> Iterator[tuple[str, State]]:
        half = state.half
        if half is None or (half.is_discarded and self.leaves_discarded_out):
            yield "is left out of its pipeline", state.at(actor, "stepwise")
        elif state.lock:
            yield "is left out of its pipeline, as the row is locked", state.at(actor, "stepwise")
            yield "waits in its pipeline", state.at(actor, "waits in its pipeline")
        else:
            yield "locks the row in its pipeline", state._replace(lock=actor).at(actor, "holds")

    def _is_mine(self, half: Half | None, actor: str) -> bool:
        return half is not None and half.is_discarded == OF_DISCARDED.get(actor, False)

    def _postponed(self, state: State) -> State:
        half = state.half
        if half is None or half.is_discarded:
            return state
        checks = min(half.checks + 1, MAX_CHECKS)
        return state._replace(half=half._replace(checks=checks, is_exhausted=checks >= MAX_CHECKS))

    def _ended(self, state: State, actor: str) -> State:
        """The delete of the row is the decision."""
        fault = state.fault
        if state.half is not None and state.half.is_discarded != OF_DISCARDED[actor]:
            fault = "a discarded half message was decided by another one than the operator"
        ended = state._replace(half=None, lock="", fault=fault)
        return (
            self._recorded(ended.at(actor, IDLE), actor)
            if self.records_with_the_delete
            else ended.at(actor, "unrecorded")
        )

    def _recorded(self, state: State, actor: str) -> State:
        decision = DECISIONS[actor]
        entries = state.entries + (decision == "COMMIT")
        return state._replace(operations=(*state.operations, decision), entries=entries)

    def _answered(self, state: State, actor: str) -> State:
        half, idle = state.half, state.at(actor, IDLE)
        if half is not None and half.is_discarded == OF_DISCARDED[actor]:
            if self.is_overtaken:
                return state.at(actor, "stepwise")
            return idle._replace(fault=f"the {actor} was refused, and the transaction could be decided")
        if half is None and state.is_begun and not state.decisions:
            return idle._replace(fault=f"the {actor} is answered that there is no such transaction")
        return idle

    def _worker(self, state: State, actor: str, stage: str) -> Iterator[tuple[str, State]]:
        half = state.half
        is_pending = half is not None and not half.is_discarded
        if stage == IDLE and half is not None and is_pending and half.is_exhausted:
            yield "finds it exhausted", state.at(actor, "found")
        elif stage == "found" and not state.lock:
            if half is not None and is_pending and (half.is_exhausted or not self.discards_exhausted_only):
                yield "locks the row to discard it", state._replace(lock=actor).at(actor, "holds")
            else:
                yield "has nothing to discard", state.at(actor, IDLE)
        elif stage == "holds" and half is not None:
            fault = state.fault if half.is_exhausted else "discarded, and its checks were not used up"
            operations = (*state.operations, "DISCARD")
            discarded = state._replace(
                half=half._replace(is_discarded=True), lock="", operations=operations, fault=fault
            )
            yield "discards it", discarded.at(actor, IDLE)
            yield "is rolled back", state._replace(lock="").at(actor, IDLE)

    def fault(self, state: State) -> str | None:
        decisions = state.decisions
        if state.fault is not None:
            return state.fault
        if len(decisions) > 1:
            return f"two decisions: {' and '.join(decisions)}"
        if state.is_begun and (state.half is None) != bool(decisions):
            return "the half message is gone without a decision, or decided and still there"
        if state.entries != decisions.count("COMMIT"):
            return "visible without a commit, or committed and not visible"
        open_discards = state.operations.count("DISCARD") - state.operations.count("RESUME")
        if state.half is not None and open_discards != state.half.is_discarded:
            return "the operations do not say how the half message stands"
        return None

    def is_settled(self, state: State) -> bool:
        return bool(state.decisions) and not state.lock and all(stage == IDLE for _, stage in state.stages)


MODEL = OneDecision()
TWINS: Mapping[str, OneDecision] = {
    "a stepwise end that waited does not look at the row again": OneDecision(looks_again=False),
    "an end records its operation in a transaction of its own": OneDecision(records_with_the_delete=False),
    "an end that found nothing believes it": OneDecision(is_overtaken=False),
    "a pipelined end decides a discarded half message": OneDecision(leaves_discarded_out=False),
    "a discard does not look again whether checks are used up": OneDecision(discards_exhausted_only=False),
}
