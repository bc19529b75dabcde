"""Ack and send: a message that a consumer made of its delivery is stored with the ack, or neither is done.

The steps, and what they stand for:
- a batch acks its delivery, if the message can be stored, or leaves it out: `delivery/sql/ack_forwards.sql`,
  `delivery.receipts.forward.Forward.further_locks`, `store/sql/skip_stored.sql`
- a call that was left out locks its receipt: `delivery.receipts.forward.Forward.write`,
  `delivery.receipts.failing.receipts_of`, `delivery/sql/lock_receipts.sql`
- a call whose receipt is gone is a repeat, or refused: `delivery.receipts.forward.Forward._is_over`,
  `delivery.receipts.forward.Forward._first_answers`
- a call appends its message, acks and commits: `scheduling.sending.send.Send.write`,
  `delivery.receipts.elsewhere.settled`,
  `delivery/sql/ack_receipts.sql`
- the delivery expires and comes again: `delivery/sql/take_expired.sql`

Bounds: one message of two deliveries; each consumer makes a message with an id of its own, and has its call written
by two processes at once, as where it repeats a call without an answer. A call may be rolled back or killed between
any two steps; its time is the time of its begin.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

DELIVERIES = 2
COPIES = 2


class Call(NamedTuple):
    """A call at one process, by the delivery that it is of. `known`: what it has read of stored messages before."""

    delivery: int
    stage: str = "idle"
    known: bool = False
    answer: str = ""
    is_left_out: bool = False


class State(NamedTuple):
    """The delivery that has a receipt, 0 for none; whether its time is over; and the messages made of deliveries."""

    receipt: int = 0
    is_over: bool = False
    waits: bool = True
    is_done: bool = False
    lock: int | None = None
    stored: tuple[int, ...] = ()
    calls: tuple[Call, ...] = ()
    fault: str | None = None

    def call(self, number: int, **fields: Any) -> "State":
        calls = list(self.calls)
        calls[number] = calls[number]._replace(**fields)
        return self._replace(calls=tuple(calls))


@dataclass(frozen=True)
class Forwarding:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    locks_receipts: bool = True  # before anything is written
    in_one: bool = True  # transaction
    acks_first: bool = False  # where there are two transactions
    looks_behind: bool = True  # for stored messages, once the receipt is found gone
    asks_first: bool = True  # whether the message can be stored, before a batch acks
    passes_over: bool = True  # in a batch, a receipt that has changed since it was looked for

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        handed = len(state.calls) // COPIES
        if state.waits and handed < DELIVERIES:
            calls = (*state.calls, *(Call(handed + 1),) * COPIES)
            yield (
                "the message is handed out",
                state._replace(receipt=handed + 1, is_over=False, waits=False, calls=calls),
            )
        if state.receipt and not state.is_over:
            yield "the invisible time is over", state._replace(is_over=True)
        if state.receipt and state.is_over and state.lock is None:
            yield "the delivery expires", state._replace(receipt=0, is_over=False, waits=True)
        for number, call in enumerate(state.calls):
            act = self._in_batch if call.stage == "packed" else self._act
            for name, following in act(state, number, call):
                yield f"call {number % COPIES + 1} of delivery {call.delivery} {name}", following

    def _act(self, state: State, number: int, call: Call) -> Iterator[tuple[str, State]]:
        is_mine = state.receipt == call.delivery
        if call.stage == "idle" and not call.answer:
            known = call.delivery in state.stored
            # Its receipt is looked for by the time of its begin.
            stage = "found" if (is_mine and not state.is_over) or not self.locks_receipts else "missing"
            yield "begins", state.call(number, stage=stage, known=known)
            if stage == "found" and self.locks_receipts and not call.is_left_out:
                yield "begins in a batch", state.call(number, stage="packed")
        elif call.stage == "found" and (state.lock is None or not self.locks_receipts):
            if is_mine and self.locks_receipts:
                yield "locks the receipt", state._replace(lock=number).call(number, stage="holds")
            elif self.locks_receipts:
                yield "finds the receipt gone", state.call(number, stage="missing")
            elif call.delivery not in state.stored:
                yield "commits", self._sent(self._acked(state, call), call).call(number, stage="idle", answer="sent")
        elif call.stage == "holds":
            yield "is rolled back", state._replace(lock=None).call(number, stage="idle")
            yield from self._commit(state._replace(lock=None), number, call)
        elif call.stage == "half done":
            other = self._sent if self.acks_first else self._acked
            yield "does the other half", other(state, call).call(number, stage="idle", answer="sent")
            yield "is killed", state.call(number, stage="idle", answer="none")
        elif call.stage == "missing":
            yield "is answered", self._answered(state, number, call)

    def _in_batch(self, state: State, number: int, call: Call) -> Iterator[tuple[str, State]]:
        is_mine = state.receipt == call.delivery
        yield "is left out", state.call(number, stage="idle", is_left_out=True)
        if state.lock is None and (is_mine or not self.passes_over):
            yield "acks in a batch", state._replace(lock=number).call(number, stage="holds")
        if state.lock is None and is_mine and not self.asks_first:
            yield "acks, and cannot store its message", self._acked(state, call).call(number, answer="none")

    def _commit(self, state: State, number: int, call: Call) -> Iterator[tuple[str, State]]:
        if self.in_one:
            both = self._sent(self._acked(state, call), call)
            yield "commits", both.call(number, stage="idle", answer="sent")
            yield "commits, and its answer is lost", both.call(number, stage="idle", answer="none")
        else:
            one = self._acked if self.acks_first else self._sent
            yield "commits one half", one(state, call).call(number, stage="half done")

    @staticmethod
    def _sent(state: State, call: Call) -> State:
        return state._replace(stored=tuple(sorted((*state.stored, call.delivery))))

    @staticmethod
    def _acked(state: State, call: Call) -> State:
        if state.receipt != call.delivery:
            return state
        return state._replace(receipt=0, is_over=False, is_done=True)

    def _answered(self, state: State, number: int, call: Call) -> State:
        is_stored = call.delivery in state.stored
        if is_stored if self.looks_behind else call.known:
            return state.call(number, stage="idle", known=False, answer="sent")
        refused = state.call(number, stage="idle", known=False, answer="refused")
        return refused._replace(fault="refused, and its message is stored") if is_stored else refused

    def fault(self, state: State) -> str | None:
        if state.fault is not None:
            return state.fault
        if len(state.stored) > 1:
            return "two messages were made of one"
        half_done = any(call.stage == "half done" for call in state.calls)
        if state.is_done and not state.stored and not half_done:
            return "acked, and the message that was made of it is not stored"
        if any(call.answer == "sent" and call.delivery not in state.stored for call in state.calls):
            return "answered as sent, and not stored"
        return None

    def is_settled(self, state: State) -> bool:
        return bool(state.stored) == state.is_done and all(call.answer for call in state.calls) and not state.receipt


MODEL = Forwarding()
TWINS: Mapping[str, Forwarding] = {
    "the message is stored, and then acked by a transaction of its own": Forwarding(in_one=False),
    "the delivery is acked, and then sent by a transaction of its own": Forwarding(in_one=False, acks_first=True),
    "a receipt is not locked before the message is stored": Forwarding(locks_receipts=False),
    "a repeat looks for its messages before its receipt": Forwarding(looks_behind=False),
    "a batch acks before it knows that the message can be stored": Forwarding(asks_first=False),
    "a batch sends for a receipt that has changed meanwhile": Forwarding(passes_over=False),
}
