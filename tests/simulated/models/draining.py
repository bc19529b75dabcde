"""Drain of an outbox: rows of one sharding key are sent once each, in the order in which their transactions committed.

The steps, and what they stand for:
- an insert locks the key, takes its number and commits: the trigger of `docs/sql.md`
- a process gets the turn: `transactions.outboxes.drain.Drain._turn`, `transactions.outboxes.source.Source.turn`,
  `transactions/outboxes/sql/take_turn.sql`; with its rows in one statement:
  `transactions.outboxes.source.Source.small_turn`, `transactions/outboxes/sql/take_small.sql`,
  `transactions.outboxes.turns.take_small`, `transactions.outboxes.drain.Drain._small_turn`
- it takes the rows: `transactions.outboxes.turns.Batch._take`, `transactions.outboxes.turns.Batch._store`,
  `transactions/outboxes/sql/measure_rows.sql`,
  `transactions/outboxes/sql/take_rows.sql`
- it stores the messages, each run behind the one before: `transactions.outboxes.messages.chains`,
  `transactions.outboxes.messages._store_chain`, `transactions.outboxes.messages._try_to_send`,
  `transactions.outboxes.messages._send_of`
- a row waits, and those behind it: `transactions.outboxes.turns._SomeLeft`,
  `transactions.outboxes.source.Source.undoing`,
  `transactions/outboxes/sql/delete_rows.sql`
- the source ends the session of a process that is frozen: `transactions/outboxes/sql/enter_source.sql`

Bounds: three producers that insert one row of the same key each, and may roll back; two processes that may be killed
or frozen between any two steps; one row that has to wait once. Each message is stored by a transaction of its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

PRODUCERS = 3


class Producer(NamedTuple):
    """A transaction that inserts a row: its stage, and the number of the row."""

    stage: str = "begins"
    number: int = 0


class Process(NamedTuple):
    """A process with the turn: what it has still to store, what it has stored, and what is to stay."""

    stage: str = "idle"
    to_store: tuple[int, ...] = ()
    stored: tuple[int, ...] = ()
    stays: tuple[int, ...] = ()
    has_session: bool = True


class State(NamedTuple):
    """The source and the broker. Rows are their numbers; `committed` and `stored` have them in this order."""

    producers: tuple[Producer, ...] = (Producer(),) * PRODUCERS
    next_number: int = 1
    rows: frozenset[int] = frozenset()
    committed: tuple[int, ...] = ()
    stored: tuple[int, ...] = ()
    processes: tuple[Process, ...] = (Process(),) * 2
    may_wait: bool = True

    def process(self, number: int, process: Process) -> "State":
        return self._replace(processes=(*self.processes[:number], process, *self.processes[number + 1 :]))

    def producer(self, number: int, producer: Producer) -> "State":
        return self._replace(producers=(*self.producers[:number], producer, *self.producers[number + 1 :]))


@dataclass(frozen=True)
class Draining:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    locks_keys: bool = True  # in the trigger, before a row has its number
    commits_behind: bool = True  # the source, once the messages are stored
    has_ids: bool = True  # a message has the id of its row, under which it is stored once
    keeps_order: bool = True  # what is behind a row that waits, waits, too

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for number, producer in enumerate(state.producers):
            for name, following in self._insert(state, number, producer):
                yield f"producer {number + 1} {name}", following
        for number, process in enumerate(state.processes):
            for name, following in self._drain(state, number, process):
                yield f"process {number + 1} {name}", following

    def _insert(self, state: State, number: int, producer: Producer) -> Iterator[tuple[str, State]]:
        is_locked = any(one.stage == "inserted" for one in state.producers)
        if producer.stage == "begins" and not (is_locked and self.locks_keys):
            inserted = state._replace(next_number=state.next_number + 1)
            yield "inserts its row", inserted.producer(number, Producer("inserted", state.next_number))
        elif producer.stage == "inserted":
            done = state.producer(number, Producer("done"))
            committed = (*state.committed, producer.number)
            yield "commits", done._replace(rows=state.rows | {producer.number}, committed=committed)
            yield "rolls back", done

    def _drain(self, state: State, number: int, process: Process) -> Iterator[tuple[str, State]]:
        if process.stage == "idle":
            has_turn = all(one.stage == "idle" or not one.has_session for one in state.processes)
            if has_turn and state.rows:
                yield "takes the rows", self._taken(state, number)
            return
        yield "is killed", state.process(number, Process())
        if process.has_session:
            yield "loses its session at the source", state.process(number, process._replace(has_session=False))
        if process.to_store:
            yield from self._store(state, number, process)
        elif process.has_session:
            yield "commits at the source", self._left(state, process).process(number, Process())
        else:
            yield "finds its session ended", state.process(number, Process())

    def _taken(self, state: State, number: int) -> State:
        """Rows that were taken are there for all others until the commit."""
        taken = Process("stores", tuple(sorted(state.rows)))
        if not self.commits_behind:
            state, taken = state._replace(rows=frozenset()), taken._replace(has_session=False)
        return state.process(number, taken)

    def _store(self, state: State, number: int, process: Process) -> Iterator[tuple[str, State]]:
        row, *behind = process.to_store
        stored = state.stored if row in state.stored and self.has_ids else (*state.stored, row)
        done = process._replace(to_store=tuple(behind), stored=(*process.stored, row))
        yield f"stores the message of row {row}", state._replace(stored=stored).process(number, done)
        if state.may_wait:
            stays = process.to_store if self.keeps_order else (row,)
            waits = process._replace(to_store=() if self.keeps_order else tuple(behind), stays=stays)
            yield f"has row {row} wait", state._replace(may_wait=False).process(number, waits)

    @staticmethod
    def _left(state: State, process: Process) -> State:
        return state._replace(rows=state.rows.difference(process.stored))

    def fault(self, state: State) -> str | None:
        if len(set(state.stored)) < len(state.stored):
            return "a row is sent twice"
        if state.stored != state.committed[: len(state.stored)]:
            return "rows of one key are not sent in the order of their commits"
        working = {row for one in state.processes for row in one.to_store if not self.commits_behind}
        if not {*state.rows, *state.stored, *working}.issuperset(state.committed):
            return "a row is gone, and its message is not stored"
        return None

    def is_settled(self, state: State) -> bool:
        are_done = all(one.stage == "done" for one in state.producers)
        return are_done and not state.rows and all(one.stage == "idle" for one in state.processes)


MODEL = Draining()
TWINS: Mapping[str, Draining] = {
    "an insert takes its number without a lock of its key": Draining(locks_keys=False),
    "the source commits before the messages are stored": Draining(commits_behind=False),
    "each sending of a row has an id of its own": Draining(has_ids=False),
    "rows behind one that waits are sent": Draining(keeps_order=False),
}
