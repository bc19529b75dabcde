"""Deliveries of one message to one group: handed out, acked, extended, given back, expired, and handed out again.

The steps, and what they stand for:
- hand out: `delivery/sql/hand_out.sql`; of an ordered group again: `delivery/sql/hand_out_again.sql`,
  `delivery.retries.ordered.choose_again`
- ack: `delivery.receipts.settling.Ack.settle`, `delivery.receipts.settling.Ack.write`,
  `delivery.receipts.elsewhere.acked`, `delivery/sql/ack_receipts.sql`; of a delivery in a bundle
  `delivery.receipts.bundles.ack`, `delivery/sql/ack_bundles.sql`
- a delivery leaves its bundle for a receipt: `delivery.receipts.bundles.take_apart`, `delivery/sql/lock_bundles.sql`,
  `delivery/sql/take_apart.sql`
- extend: `delivery.receipts.settling.Extension.write`, `delivery.receipts.elsewhere.settled`,
  `delivery/sql/lock_handles.sql`, `delivery/sql/extend_receipts.sql`
- nack: `delivery.receipts.failing.Nack.write`, `delivery.receipts.failing.receipts_of`,
  `delivery/sql/take_receipts.sql`; of an ordered group `delivery/sql/lock_receipts.sql`
- expiry looks, locks, commits: `delivery.receipts.expiry.Expiry.write`, `delivery/sql/lock_expired_bundles.sql`,
  `delivery/sql/take_expired.sql`; of an ordered group `delivery/sql/lock_expired.sql`
- what follows a failed delivery: `delivery.retries.redelivery.retry`, `delivery.retries.ordered.hold`,
  `delivery/sql/hold_receipts.sql`
- the receipt's message is stored again: `delivery.reappend.ReceiptReappend.write`, `delivery/sql/move_receipts.sql`

Bounds: one message, two deliveries and then the dead letter; one extension by another process of the consumer, one
nack and one reappend; in the bundle of the first delivery another delivery that is acked, and one that fails and has
the bundle taken apart. So an ack looks more often than its row changes. Three points of time after the first one.
Each transaction has the time of its begin, and may be rolled back before its commit. An update of a row that was
found by an older snapshot does not find the row again, as by its `ctid`. A stepwise batch locks the row, then looks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

LAST_TIME = 3
INVISIBLE = 2
DELIVERIES = 2
QUEUE, FLIGHT, RETRY, DEAD, DONE, NOWHERE = "queue", "flight", "retry", "dead", "done", "nowhere"
WORKS, ANSWERED = "works", "answered"


class Receipt(NamedTuple):
    """The row of a delivery: its bundle with other deliveries, or its receipt."""

    nonce: int
    expires: int
    is_held: bool = False
    is_bundled: bool = False


class Actor(NamedTuple):
    """A transaction that settles a delivery: what it is to do, its time, and how often it has looked for the row.

    `nonce` names the handle's delivery, 0 the expiry. `is_stale`: the row was updated since the last look found it.
    `is_due`: its handle proved a delivery as it began.
    """

    nonce: int
    kind: str = ""
    stage: str = WORKS
    now: int = 0
    looks: int = 0
    is_stale: bool = False
    is_due: bool = False


EXPIRY = Actor(0)


class State(NamedTuple):
    """The clock, the message's place, its receipt, and the transactions; the last one is the expiry."""

    time: int = 0
    place: str = QUEUE
    retries: int = 0
    receipt: Receipt | None = None
    lock: int | None = None
    actors: tuple[Actor, ...] = (EXPIRY,)
    is_acked: bool = False
    left: tuple[str, ...] = ("extend", "nack", "reappend", "neighbour", "apart")
    fault: str | None = None
    # The bundle as it was read to be taken apart without its lock.
    read: Receipt | None = None

    def actor(self, number: int, **fields: Any) -> "State":
        actors = list(self.actors)
        actors[number] = actors[number]._replace(**fields)
        return self._replace(actors=tuple(actors))

    def ended(self, number: int, stage: str = WORKS) -> "State":
        """A transaction is over: what it had in mind is forgotten."""
        return self._replace(
            actors=tuple(Actor(one.nonce, stage=stage) if at == number else one for at, one in enumerate(self.actors))
        )

    def updated(self, **fields: Any) -> "State":
        """The receipt's row is another version: what has found the row before does not find it again."""
        assert self.receipt is not None
        actors = tuple(one._replace(is_stale=one.stage == "found") for one in self.actors)
        return self._replace(receipt=self.receipt._replace(**fields), actors=actors)

    def deleted(self, place: str) -> "State":
        """The receipt's row is gone: an expiry that has found the row finds nothing."""
        actors = tuple(EXPIRY if not one.nonce and one.stage == "found" else one for one in self.actors)
        return self._replace(receipt=None, place=place, actors=actors)


def _without(state: State, one: str) -> tuple[str, ...]:
    return tuple(each for each in state.left if each != one)


@dataclass(frozen=True)
class Deliveries:
    """The protocol; with one of its guards taken away a twin that must be refuted."""

    is_ordered: bool = False
    most_looks: int = 2  # one of the pipelined batch, one of the stepwise batch
    locks_before_it_looks: bool = True  # as a stepwise batch
    locks_bundles: bool = True  # before their deliveries leave them
    compares_nonces: bool = True
    expiry_looks_again: bool = True  # at the time, once it has the row's lock
    publishes_with_the_delete: bool = True

    def first(self) -> State:
        return State()

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        if state.time < LAST_TIME:
            yield "time passes", state._replace(time=state.time + 1)
        yield from self._hand_out(state)
        if state.receipt is not None and state.lock is None:
            yield from self._change_bundle(state, state.receipt)
            yield from self._update(state, state.receipt)
        if state.read is not None:
            row = state.read._replace(is_bundled=False)
            yield "the deliveries of the bundle have receipts", state._replace(receipt=row, place=FLIGHT, read=None)
        for number, actor in enumerate(state.actors):
            who = f"consumer {actor.nonce}" if actor.nonce else "expiry"
            for name, following in self._act(state, number, actor):
                yield f"{who} {name}", following

    def _hand_out(self, state: State) -> Iterator[tuple[str, State]]:
        """A new delivery has a nonce of its own; of an ordered group it is in the row of the one before."""
        receipt, nonce = state.receipt, len(state.actors)
        if nonce > DELIVERIES:
            return
        actors = (*state.actors[:-1], Actor(nonce), state.actors[-1])
        handed = state._replace(actors=actors, lock=state.lock)
        if state.place in (QUEUE, RETRY):
            is_bundled = state.place == QUEUE and not self.is_ordered
            row = Receipt(nonce, state.time + INVISIBLE, is_bundled=is_bundled)
            yield "the message is handed out", handed._replace(place=FLIGHT, receipt=row)
        elif receipt is not None and receipt.is_held and state.lock is None:
            again = handed.updated(nonce=nonce, expires=state.time + INVISIBLE, is_held=False)
            yield "the message is handed out again", again

    def _change_bundle(self, state: State, receipt: Receipt) -> Iterator[tuple[str, State]]:
        """What consumers do to other deliveries of the bundle."""
        if receipt.is_bundled and "neighbour" in state.left:
            yield "another delivery is acked", state.updated()._replace(left=_without(state, "neighbour"))
        if receipt.is_bundled and "apart" in state.left:
            left = _without(state, "apart")
            if self.locks_bundles:
                yield "the bundle is taken apart", state.updated(is_bundled=False)._replace(left=left)
            else:
                yield "the bundle is read", state._replace(read=receipt, left=left)

    def _update(self, state: State, receipt: Receipt) -> Iterator[tuple[str, State]]:
        """What changes the row of a delivery that goes on; it leaves its bundle."""
        if "reappend" in state.left:
            again = state.updated(is_bundled=False)
            yield "the message is stored again", again._replace(left=_without(state, "reappend"))
        if "extend" in state.left and not receipt.is_held:
            # Its transaction has begun now, or is slow and has begun before.
            for now in (state.time, state.time - 1):
                if receipt.expires > now:
                    extended = state.updated(expires=now + INVISIBLE, is_bundled=False)
                    yield f"the delivery is extended at {now}", extended._replace(left=_without(state, "extend"))

    def _act(self, state: State, number: int, actor: Actor) -> Iterator[tuple[str, State]]:
        if actor.stage == WORKS:
            yield from self._begin(state, number, actor)
        elif actor.stage == "looks" and self._locks_first(actor):
            if state.lock is None:
                # Its first look, if it acks, was a transaction of its own.
                now = state.time if actor.kind == "ack" else actor.now
                found = state.actor(number, stage="found", looks=self.most_looks, now=now)
                yield from self._lock(found, number, found.actors[number])
        elif actor.stage == "looks":
            yield "looks", self._look(state, number, actor)
        elif actor.stage == "found" and state.lock is None:
            yield from self._lock(state, number, actor)
        elif actor.stage == "found" and not actor.nonce:
            yield "skips the locked row", state.ended(number)
        elif actor.stage == "holds":
            yield "is rolled back", state._replace(lock=None).ended(number)
            yield f"commits its {actor.kind}", self._commit(state._replace(lock=None), number, actor)
        elif actor.stage == "unpublished":
            yield "publishes", self._published(state).ended(number, ANSWERED)

    def _begin(self, state: State, number: int, actor: Actor) -> Iterator[tuple[str, State]]:
        if actor.nonce:
            is_due = self._proves(state.receipt, actor._replace(now=state.time))
            begun = state.actor(number, kind="ack", stage="looks", now=state.time, is_due=is_due)
            yield "begins its ack", begun
            if "nack" in state.left:
                yield "begins its nack", begun._replace(left=_without(state, "nack")).actor(number, kind="nack")
        elif self._is_over(state.receipt, state.time):
            yield "finds it", state.actor(number, kind="expiry", stage="found", now=state.time)

    @staticmethod
    def _is_over(receipt: Receipt | None, now: int) -> bool:
        return receipt is not None and not receipt.is_held and receipt.expires <= now

    def _proves(self, receipt: Receipt | None, actor: Actor) -> bool:
        """Whether a handle proves the delivery of this row."""
        if receipt is None or receipt.is_held or receipt.expires <= actor.now:
            return False
        # Only an ordered group has the next delivery in the same row.
        return receipt.nonce == actor.nonce or (self.is_ordered and not self.compares_nonces)

    def _locks_first(self, actor: Actor) -> bool:
        """Whether a stepwise batch looks."""
        return self.locks_before_it_looks and (actor.kind == "nack" or actor.looks > 0)

    def _look(self, state: State, number: int, actor: Actor) -> State:
        """One statement's snapshot: it finds the row, is done over, or its caller is refused."""
        if self._proves(state.receipt, actor):
            return state.actor(number, stage="found", looks=actor.looks + 1, is_stale=False)
        return self._missed(state, number, actor._replace(looks=actor.looks + 1))

    def _missed(self, state: State, number: int, actor: Actor) -> State:
        if actor.looks < self.most_looks:
            # The first look of an ack is a transaction of its own.
            now = state.time if actor.looks == 1 else actor.now
            return state.actor(number, stage="looks", looks=actor.looks, now=now, is_stale=False)
        refused = state.ended(number, ANSWERED)
        if actor.kind == "ack" and actor.is_due and self._proves(state.receipt, actor._replace(now=state.time)):
            return refused._replace(fault="an ack is refused as expired, and the delivery has time left")
        return refused

    def _lock(self, state: State, number: int, actor: Actor) -> Iterator[tuple[str, State]]:
        holds = state._replace(lock=number).actor(number, stage="holds", is_stale=False, is_due=False, looks=0)
        if not actor.nonce:
            if self._is_over(state.receipt, actor.now) or (state.receipt and not self.expiry_looks_again):
                yield "locks the row", holds
            else:
                yield "finds nothing", state.ended(number)
        elif self._proves(state.receipt, actor) and not actor.is_stale:
            yield "locks the row", holds
        else:
            yield "does not find the row again", self._missed(state, number, actor)

    def _commit(self, state: State, number: int, actor: Actor) -> State:
        receipt = state.receipt
        assert receipt is not None
        following = ANSWERED if actor.nonce else WORKS
        if actor.kind == "ack":
            acked = state.deleted(DONE)._replace(is_acked=True).ended(number, following)
            if receipt.nonce == actor.nonce:
                return acked
            return acked._replace(fault="an old handle has acked the delivery of another consumer")
        if not actor.nonce and receipt.expires > actor.now:
            state = state._replace(fault="a delivery was ended that had time left")
        if self.publishes_with_the_delete:
            return self._published(state).ended(number, following)
        return state.deleted(NOWHERE).actor(number, stage="unpublished")

    def _published(self, state: State) -> State:
        """What follows a failed delivery: a retry, held in its row or in the group's retries, or the dead letter."""
        if state.retries + 1 >= DELIVERIES:
            return state.deleted(DEAD)
        retried = state._replace(retries=state.retries + 1)
        if self.is_ordered and state.receipt is not None:
            return retried.updated(nonce=0, is_held=True, expires=0)
        return retried.deleted(RETRY)

    def fault(self, state: State) -> str | None:
        if state.fault is not None:
            return state.fault
        if state.is_acked and state.place != DONE:
            return "acked, and offered again"
        if state.place == NOWHERE or (state.receipt is not None) != (state.place == FLIGHT):
            return "the message is in no place, or in two"
        return None

    def is_settled(self, state: State) -> bool:
        # What ends behind the last point of time is beyond the bounds.
        is_beyond = state.receipt is not None and state.receipt.expires > LAST_TIME
        return (state.place in (DONE, DEAD) or is_beyond) and state.lock is None


MODEL = Deliveries()
ORDERED = Deliveries(is_ordered=True)
TWINS: Mapping[str, Deliveries] = {
    "an ack looks once": Deliveries(most_looks=1),
    "a stepwise batch looks without locks": Deliveries(locks_before_it_looks=False),
    "a bundle is taken apart without its lock": Deliveries(locks_bundles=False),
    "an ack of an ordered group does not compare nonces": Deliveries(is_ordered=True, compares_nonces=False),
    "expiry does not look again at the time": Deliveries(expiry_looks_again=False),
    "a retry is published in a transaction of its own": Deliveries(publishes_with_the_delete=False),
}
