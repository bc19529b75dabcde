"""Forward: acks a consumer's deliveries and stores the messages that the consumer sends for them,
in one transaction.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Self

from access.callers import Caller
from delivery import groups
from delivery.receipts.elsewhere import acked
from delivery.receipts.failing import LOCK_RECEIPTS, receipts_of
from delivery.receipts.given import expired, unpacked, wake
from delivery.receipts.handles import PACKED, Handle, by_cell
from delivery.receipts.settling import HANDLE_BYTES
from delivery.rows import FailedReceipt, GroupFacts
from scheduling import recalls
from scheduling.sending import repeats
from scheduling.sending.results import Sent
from scheduling.sending.send import Send
from store.commit.batch import Batch
from store.commit.operation import Operation
from store.errors import MessageIdReused, MessageIllegal, Refusal, TopicMoved, TransactionSpansCells
from store.messages import Message
from store.process import runtime

MAX_MESSAGES = 128


class Met(Exception):
    """Another operation of the batch has a message with the same id, so the two are written one after the other."""


class Forward(Operation[list[Sent]]):
    """Acks deliveries and sends messages: both are committed, or neither is.

    POST /v1/consumer-groups/{group}/ack with `messages`, and `ack` of a bulk with `messages`. The result has the answer
    of each message, in the order given. The operation refuses a handle that proves no delivery, deliveries and topics
    of several cells, and each message that a send refuses. A repeat finds all its deliveries acked and all its message
    ids stored; it is answered like the first request, with `duplicate`.

    Written stepwise only: in a pipelined batch the sends would need the result of the acks before they are written.
    """

    __slots__ = ("caller", "given", "group", "group_name", "handles", "request_bytes", "sends")
    # A forward is written after the batch's sends, so that it sees their messages.
    ORDER = 3
    URGENT = True

    def __init__(
        self,
        group_name: str,
        given: list[str],
        messages: Sequence[Message],
        traceparent: str | None = None,
        caller: Caller | None = None,
        request_bytes: int = 0,
    ) -> None:
        super().__init__()
        self.group_name = group_name
        self.given = given
        self.caller = caller
        self.request_bytes = request_bytes
        # The sends have no caller: this operation checks the caller's permission for all messages at once.
        self.sends = [Send(each, traceparent) for each in messages]
        # `complete` sets these:
        self.group: GroupFacts
        self.handles: Set[Handle] = frozenset()

    def ready(self) -> bool:
        """False: the write reads the receipts first. Raises NoPermission unless the caller may consume and produce."""
        if self.caller is not None:
            self.caller.require("consume", self.group_name)
            for send in self.sends:
                for message in send.messages:
                    self.caller.require("produce", message.topic)
        return False

    async def complete(self) -> None:
        if not 1 <= len(self.sends) <= MAX_MESSAGES:
            raise MessageIllegal(f"messages has {len(self.sends)} messages: give 1 to {MAX_MESSAGES}, or leave it out.")
        self.group = await groups.existing(self.group_name)
        found = dict(zip(self.given, unpacked(self.group, self.given), strict=True))
        for text, handle in found.items():
            if handle is None:
                raise expired(text)
        self.handles = {one for one in found.values() if one is not None}
        self.key = PACKED.pack(*min(self.handles))
        if self.caller is not None:
            # One call spends for all messages: with a call for each, more than a second's limit would never pass.
            self.caller.spend(len(self.sends), self.request_bytes)
        for send in self.sends:
            await send.complete()
        self._place()

    def _place(self) -> None:
        """Sets cell, version, size and `ordered`. Raises TransactionSpansCells, or MessageIdReused when two messages
        have the same id.
        """
        cells = {*by_cell(self.given)} | {send.cell for send in self.sends if send.cell is not None}
        if len(cells) > 1:
            names = ", ".join(sorted(runtime.of(cell).name for cell in cells))
            raise TransactionSpansCells(
                f"The deliveries and the topics of the new messages lie in several cells ({names}): send "
                "first and ack afterwards, or put these topics into one home by `cells topics home`."
            )
        [self.cell] = cells
        ids = self._ids
        if len({*ids}) < len(ids):
            raise MessageIdReused("Two messages have the same message_id: give each its own.")
        self.version = min((send.version for send in self.sends if send.version is not None), default=None)
        self.size = len(self.handles) * HANDLE_BYTES + sum(send.size for send in self.sends)
        self.ordered = any(send.ordered for send in self.sends)

    @property
    def _ids(self) -> list[object]:
        return [record.message_id for send in self.sends for record in send.parcel.records]

    async def renew(self, refusal: Refusal) -> bool:
        """Renews its sends. Deliveries of a topic that has left this cell are refused: the new cell redelivers them."""
        if not isinstance(refusal, MessageIdReused | TopicMoved):
            return False
        renewed = [await send.renew(refusal) for send in self.sends]
        self._place()
        return any(renewed)

    def written_topics(self) -> Mapping[int, str]:
        return {id_: name for send in self.sends for id_, name in send.written_topics().items()}

    @contextmanager
    def detour(self) -> Iterator[None]:
        with ExitStack() as stack:
            for send in self.sends:
                stack.enter_context(send.detour())
            yield

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> AsyncGenerator[None, None]:
        locked = await receipts_of(batch, LOCK_RECEIPTS, {handle for one in operations for handle in one.handles})
        live = [one for one in operations if not await one._is_over(batch, locked)]
        sends = [send for one in live for send in one.sends]
        for send in sends:
            send.result = send.refusal = None
        before = {record.message_id for record in batch.records}
        if any(not before.isdisjoint(one._ids) for one in live):
            raise Met
        steps = Send.write(batch, sends)
        await anext(steps)
        for send in sends:
            # The other operations of the batch are then written without this one.
            if send.refusal is not None:
                raise send.refusal
        await acked(batch, {handle for one in live for handle in one.handles})
        yield
        await anext(steps)
        yield
        await anext(steps, None)
        for one in live:
            one.result = [sent for send in one.sends for sent in send.result or ()]
            batch.after_commit(partial(wake, one.group, one.handles))

    async def _is_over(self, batch: Batch, locked: Mapping[Handle, FailedReceipt]) -> bool:
        """Whether a receipt is missing, so that nothing is written.

        Then sets the result of a repetition, or the refusal.
        """
        missing = [text for text, handle in self._texts() if handle not in locked]
        if not missing:
            return False
        try:
            self.result = await self._first_answers(batch) if len(missing) == len(self.given) else None
            if self.result is None:
                self.refusal = expired(missing[0])
        except Refusal as refusal:
            self.refusal = refusal
        return True

    def _texts(self) -> list[tuple[str, Handle | None]]:
        return list(zip(self.given, unpacked(self.group, self.given), strict=True))

    async def _first_answers(self, batch: Batch) -> list[Sent] | None:
        """The answers of the first request, if it was committed; None when one of its messages is not stored."""
        accepted = [each for send in self.sends for each in send.parcel.each(send.messages)]
        stored = await batch.stored_before(accepted)
        if any(each.message_id not in stored for each in accepted):
            return None
        standings = await recalls.standings(batch, [id_ for id_, row in stored.items() if row.queue_offset is None])
        return [
            repeats.answer_repeat(each, stored[each.message_id], standings.get(each.message_id)) for each in accepted
        ]
