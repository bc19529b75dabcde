"""Forward: acks a consumer's deliveries and stores the messages that the consumer sends for them,
in one transaction.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Self

from access.callers import Caller
from delivery import groups
from delivery.receipts import bundles
from delivery.receipts.bundles import BundleKey
from delivery.receipts.elsewhere import acked
from delivery.receipts.failing import LOCK_RECEIPTS, receipts_of
from delivery.receipts.given import expired, require_count, unpacked, wake
from delivery.receipts.handles import PACKED, Handle, by_cell
from delivery.receipts.settling import HANDLE_BYTES
from delivery.rows import FailedReceipt, GroupFacts
from scheduling import recalls
from scheduling.sending import repeats
from scheduling.sending.packed import Timer
from scheduling.sending.results import Sent
from scheduling.sending.send import Send
from store.commit.batch import Batch
from store.commit.operation import Pipelined
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import MessageIdReused, MessageIllegal, Refusal, TopicMoved, TransactionSpansCells
from store.messages import Message
from store.process import runtime

MAX_MESSAGES = 128
ACK_FORWARDS = Statement(__file__, "ack_forwards", one=str)


class Met(Exception):
    """Two operations of the batch have the same delivery or message id, so they are written one after the other."""


class Forward(Pipelined[list[Sent]]):
    """Acks deliveries and sends messages: both are committed, or neither is.

    POST /v1/consumer-groups/{group}/ack with `messages`, and `ack` of a bulk with `messages`. The result has the answer
    of each message, in the order given. Reasons for a refusal: a handle that proves no delivery; deliveries and topics
    of several cells; a message that a send would refuse. A repeat finds all its deliveries acked and all its message
    ids stored. It is answered like the first request, with `duplicate`.

    In a pipelined batch `ack_forwards` decides which forwards are written, and acks their deliveries. Then the messages
    are stored together with the messages of the batch's sends. A forward with a sharding key is not plain, because a
    later message of the key would overtake a forward that is left out. A forward with a time of delivery is not plain
    either: this time is validated only when the message is stored.
    """

    __slots__ = ("caller", "given", "group", "group_name", "handles", "parts", "request_bytes")
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
        self.parts: list[Send] = [Send(each, traceparent) for each in messages]
        # `complete` sets these:
        self.group: GroupFacts
        self.handles = bundles.Handles({}, set())

    def ready(self) -> bool:
        """Whether no look-up is needed. Raises NoPermission unless the caller may consume and produce."""
        if self.caller is not None:
            self.caller.require("consume", self.group_name)
            for name in [message.topic for send in self.parts for message in send.messages]:
                self.caller.require("produce", name)
        group = groups.known(self.group_name)
        if group is None or (self.caller is not None and self.caller.allowance is not None):
            return False
        self._prove(group)
        if is_ready := all(send.ready() for send in self.parts):
            self._place()
        return is_ready and self.is_plain

    def _prove(self, group: GroupFacts) -> None:
        """Sets group and handles. Raises MessageIllegal, or ReceiptExpired for a text that is no handle."""
        if not 1 <= len(self.parts) <= MAX_MESSAGES:
            raise MessageIllegal(f"messages has {len(self.parts)} messages: give 1 to {MAX_MESSAGES}, or leave it out.")
        require_count(self.given)
        self.group = group
        self.handles, is_whole = bundles.read(group.id, self.given)
        if not is_whole:
            raise expired(next(text for text, handle in self._texts() if handle is None))

    async def complete(self) -> None:
        self._prove(await groups.existing(self.group_name))
        if self.caller is not None:
            # The limit is charged once, for all messages together: with a charge for each message, more messages than a
            # second's limit would never pass.
            self.caller.spend(len(self.parts), self.request_bytes)
        for send in self.parts:
            await send.complete()
        self._place()

    def _place(self) -> None:
        """Sets the cell and the ids, and whether a pipelined batch may take the forward. Raises TransactionSpansCells,
        or MessageIdReused when two messages have the same id.
        """
        cells = {*by_cell(self.given)} | {send.cell for send in self.parts if send.cell is not None}
        if len(cells) > 1:
            names = ", ".join(sorted(runtime.of(cell).name for cell in cells))
            raise TransactionSpansCells(
                f"The deliveries and the topics of the new messages lie in several cells ({names}): send "
                "first and ack afterwards, or put these topics into one home by `cells topics home`."
            )
        [self.cell] = cells
        keys = [send.key for send in self.parts]
        if len({*keys}) < len(keys):
            raise MessageIdReused("Two messages have the same message_id: give each message another id.")
        self.version = min((send.version for send in self.parts if send.version is not None), default=None)
        self.size = len(self.handles) * HANDLE_BYTES + sum(send.size for send in self.parts)
        self.ordered = any(send.ordered for send in self.parts)
        handles = [PACKED.pack(*handle) for handle in self.handles]
        self.key = min(handles)
        self.ids = (*handles, *keys)
        has_time = any(isinstance(send.wait, Timer) and send.wait.delay.at is not None for send in self.parts)
        is_small = self.size < MAX_BATCH_BYTES
        self.is_plain = is_small and all(send.is_plain for send in self.parts) and not (self.ordered or has_time)

    async def renew(self, refusal: Refusal) -> bool:
        """Renews the sends after a refusal. If a topic has left this cell, its new cell redelivers the messages."""
        if not isinstance(refusal, MessageIdReused | TopicMoved):
            return False
        renewed = [await send.renew(refusal) for send in self.parts]
        self._place()
        return any(renewed)

    def written_topics(self) -> Mapping[int, str]:
        return {id_: name for send in self.parts for id_, name in send.written_topics().items()}

    @contextmanager
    def detour(self) -> Iterator[None]:
        with ExitStack() as stack:
            for send in self.parts:
                stack.enter_context(send.detour())
            yield

    @classmethod
    def further_locks(cls, operations: Sequence[Self], segment_id: bytes, only_free: bytes) -> Iterable[Call]:
        places: list[tuple[int, ...]] = []
        for number, one in enumerate(operations, start=1):
            # Receipts are passed in the form of bundles, as a key and a bit, so that one statement locks both.
            of_one = {**one.handles.places, **bundles.places_of(one.handles.apart)}
            places += [(number, *key, bundles.signed(bits)) for key, bits in of_one.items()]
            for send in one.parts:
                send.forward = number
        sends = [send for one in operations for send in one.parts]
        entries = [(send.forward, *send.queue) for send in sends if send.queue is not None]
        repeatable = [send for send in sends if send.parcel.repeatable]
        columns = {
            **arrays.int4_columns(("forward", *BundleKey._fields, "places"), places, bundles.WIDE),
            **arrays.int4_columns(("entry_forward", "entry_topic_id", "entry_queue_id"), entries),
            "message_id": arrays.uuids([send.key for send in repeatable]),
            "message_forward": arrays.int4s([send.forward for send in repeatable]),
            "segment_id": segment_id,
        }
        return [Call(ACK_FORWARDS, columns)]

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        for one in operations:
            if all(send.result is not None for send in one.parts):
                one.result = one._answers()
                wake(one.group, one.handles)

    def _answers(self) -> list[Sent]:
        return [sent for send in self.parts for sent in send.result or ()]

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> AsyncGenerator[None, None]:
        locked = await receipts_of(batch, LOCK_RECEIPTS, {handle for one in operations for handle in one.handles})
        live = [one for one in operations if not await one._is_over(batch, locked)]
        sends = [send for one in live for send in one.parts]
        for send in sends:
            send.result = send.refusal = None
        before = {record.message_id.bytes for record in batch.records}
        handles = [handle for one in live for handle in one.handles]
        if len({*handles}) < len(handles) or not before.isdisjoint(send.key for send in sends):
            raise Met
        steps = Send.write(batch, sends)
        await anext(steps)
        for send in sends:
            # The next attempt then writes the other operations of the batch without this operation.
            if send.refusal is not None:
                raise send.refusal
        await acked(batch, {*handles})
        yield
        await anext(steps)
        yield
        await anext(steps, None)
        for one in live:
            one.result = one._answers()
            batch.after_commit(partial(wake, one.group, one.handles))

    async def _is_over(self, batch: Batch, locked: Mapping[Handle, FailedReceipt]) -> bool:
        """Returns True if a receipt is missing: then nothing is written, and the result of a repetition or the refusal
        is set.
        """
        missing = [text for text, handle in self._texts() if handle not in locked]
        try:
            if len(missing) == len(self.given):
                self.result = await self._first_answers(batch)
            if missing and self.result is None:
                self.refusal = expired(missing[0])
        except Refusal as refusal:
            self.refusal = refusal
        return bool(missing)

    def _texts(self) -> list[tuple[str, Handle | None]]:
        return list(zip(self.given, unpacked(self.group, self.given), strict=True))

    async def _first_answers(self, batch: Batch) -> list[Sent] | None:
        """The answers of the first request, if it was committed; None if a message of this request is not stored."""
        accepted = [each for send in self.parts for each in send.parcel.each(send.messages)]
        stored = await batch.stored_before(accepted)
        if any(each.message_id not in stored for each in accepted):
            return None
        standings = await recalls.standings(batch, [id_ for id_, row in stored.items() if row.queue_offset is None])
        return [
            repeats.answer_repeat(each, stored[each.message_id], standings.get(each.message_id)) for each in accepted
        ]
