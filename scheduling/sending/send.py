"""Send: stores messages of one request in one queue, and makes them visible at once or after their delay."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from access.callers import Caller
from scheduling import delays, recalls
from scheduling.publish import Publication, publish
from scheduling.sending import packed, repeats
from scheduling.sending.batches import SendBatch
from scheduling.sending.detours import Detours
from scheduling.sending.packed import Level, Timer
from scheduling.sending.results import Sent
from store.commit.batch import Batch
from store.commit.operation import Pipelined
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db import arrays
from store.db.pipeline import Call, Results
from store.errors import MessageIdReused, Refusal, TopicMoved
from store.messages import Message, MessageRow, accept, is_large
from store.messages.accept import Parcel
from store.messages.fields import row_of
from store.messages.ids import new_id
from store.naming import topics
from store.notices import notifier
from store.process import runtime
from store.queues import SEND_MESSAGES


class Send(Pipelined[list[Sent]]):
    """Stores one message, or a batch at consecutive offsets of one queue: all its messages or none.

    POST /v1/messages, POST /v1/messages/batch, and `send` of a bulk. The result has the answer of each message, in the
    order given. A message whose id is stored already is not stored again; it gets its first answer with `duplicate`.
    When a message breaks a rule, the send is refused: nothing is stored and no topic is created. A send without a
    caller is the broker's own.
    """

    __slots__ = ("caller", "forward", "given", "parcel", "queue", "request_bytes", "traceparent", "wait")
    ORDER = 2

    def __init__(
        self,
        given: Message | SendBatch,
        traceparent: str | None = None,
        caller: Caller | None = None,
        request_bytes: int = 0,
    ) -> None:
        super().__init__()
        self.given = given
        self.traceparent = traceparent
        self.caller = caller
        self.request_bytes = request_bytes
        # The number of the `Forward` in the batch to which this send belongs; 0 if it belongs to none.
        self.forward = 0
        # `complete` sets these:
        self.parcel: Parcel
        self.wait: Level | Timer | None
        # The queue in which the messages get their entries now; None if they wait in a timer.
        self.queue: tuple[int, int] | None

    @property
    def messages(self) -> Sequence[Message]:
        """The messages that this operation sends."""
        return self.given.messages if isinstance(self.given, SendBatch) else (self.given,)

    def ready(self) -> bool:
        """Whether the send needs no look-up. In the usual case this is so: the topic is cached, the key has no limits,
        the message is not large and has no delay level.
        """
        given, caller = self.given, self.caller
        if isinstance(given, SendBatch):
            return self._batch_is_ready(given)
        if caller is not None:
            caller.require("produce", given.topic)
            if caller.allowance is not None:
                return False
        if given.delay_level or is_large(given, MAX_BATCH_BYTES):
            return False
        accepted = accept.accept_known(given, self.traceparent)
        if accepted is None:
            return False
        delay = delays.of_message(given)
        self._prepare(Parcel.of(accepted), None if delay is None else _timer_of(delay))
        return self.is_plain

    def _batch_is_ready(self, given: SendBatch) -> bool:
        if self.caller is not None:
            for name in given.named_topics:
                self.caller.require("produce", name)
            if self.caller.allowance is not None:
                return False
        given.validate()
        topic = topics.known_for_sending(given.topic_name)
        if topic is None or any(message.compression for message in given.messages):
            return False
        self._prepare(accept.accept_for(topic, given.messages, self.traceparent))
        return self.is_plain

    async def complete(self) -> None:
        if self.caller is not None:
            self.caller.spend(len(self.messages), self.request_bytes)
        await self._look_up()

    async def _look_up(self) -> None:
        given = self.given
        if isinstance(given, SendBatch):
            given.validate()
            self._prepare(await accept.accept_together(given.messages, given.topic_name, self.traceparent))
            return
        # The message is validated first, so that no topic is created for a message that breaks a rule.
        await delays.require_possible(given)
        accepted = await accept.accept(given, traceparent=self.traceparent)
        delay = delays.of_message(given)
        self._prepare(Parcel.of(accepted), await _level_of(delay) or _timer_of(delay))

    async def renew(self, refusal: Refusal) -> bool:
        """Looks the topic up again; returns whether the topic was created again or moved."""
        if not isinstance(refusal, MessageIdReused | TopicMoved):
            return False
        before = self.parcel.topic
        topics.forget(before.name)
        await self._look_up()
        topic = self.parcel.topic
        return (topic.id, topic.cell_id, topic.version) != (before.id, before.cell_id, before.version)

    def written_topics(self) -> Mapping[int, str]:
        return {self.parcel.topic.id: self.parcel.topic.name}

    def _prepare(self, parcel: Parcel, wait: Level | Timer | None = None) -> None:
        records = parcel.records
        first = records[0]
        self.parcel, self.wait = parcel, wait
        self.cell, self.version = parcel.topic.cell_id, parcel.topic.version
        self.queue = (first.topic_id, first.queue_id) if wait is None else wait.queue
        self.key = key = first.message_id.bytes
        self.ids = (key, *[id_.bytes for id_ in parcel.repeatable]) if parcel.repeatable else (key,)
        self.size = size = accept.size_of(records)
        self.ordered = packed.have_keys(records)
        # A pipelined send fits into a batch, and does not overtake an earlier message of its sharding key.
        self.is_plain = size < MAX_BATCH_BYTES and not (self.ordered and self.overtakes)
        if isinstance(wait, Timer) and not wait.is_plain:
            self.is_plain = False

    @property
    def overtakes(self) -> bool:
        return self.ordered and runtime.control(Detours).has(self._real_queue)

    @property
    def _real_queue(self) -> tuple[int, int]:
        first = self.parcel.records[0]
        return first.topic_id, first.queue_id

    @contextmanager
    def detour(self) -> Iterator[None]:
        with runtime.control(Detours).of(self._real_queue):
            yield

    @classmethod
    def queues(cls, operations: Sequence[Self]) -> Iterable[tuple[int, int]]:
        return [one.queue for one in operations if one.queue is not None]

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        return packed.calls(operations, segment_id)

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        offsets = results[SEND_MESSAGES].get_value(0, 1)
        if offsets is None:
            return
        stored_at = arrays.moment(results[SEND_MESSAGES].get_value(0, 0) or b"")
        senders = [one for one in operations for _ in one.parcel.records]
        records = packed.records_of(operations)
        visible: Counter[int] = Counter()
        # The rows are in the order of the message numbers within each queue, and so within each operation.
        for number, log_offset, queue_offset in packed.OFFSETS.iter_unpack(offsets):
            one, record = senders[number - 1], records[number - 1]
            topic = one.parcel.topic
            sent = Sent(record.message_id, topic.name, record.queue_id, queue_offset, log_offset, stored_at)
            if one.result is None:
                one.result = []
            one.result.append(sent)
            if one.wait is None:
                visible[topic.id] += 1
            else:
                packed.answer_delayed(sent, one.wait)
        notifier.notify(visible)

    def stored(self, segment_id: int) -> Iterable[MessageRow]:
        for sent, record in zip(self.result or (), self.parcel.records, strict=False):
            if self.wait is None:
                yield row_of(record, segment_id, sent.commit_log_offset, sent.stored_at)

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> AsyncGenerator[None, None]:
        accepted = {one: one.parcel.each(one.messages) for one in operations}
        stored = await batch.stored_before([each for of_one in accepted.values() for each in of_one])
        standings = await recalls.standings(batch, [id_ for id_, row in stored.items() if row.queue_offset is None])
        appended = {}
        for one, of_one in accepted.items():
            try:
                one.result = repeats.answer_again(of_one, stored, standings)
                if one.result is None:
                    for each in of_one:
                        delays.validate(delays.of_message(each.message), batch.now)
                    appended[one] = [each.record() for each in of_one]
                    batch.append(appended[one])
            except Refusal as refusal:
                one.refusal = refusal
        yield
        published: dict[Self, list[Publication]] = {}
        for one, records in appended.items():
            published[one] = repeats.publications(accepted[one], records, batch.segment_id)
            for publication in published[one]:
                await publish(batch, publication)
        yield
        for one, publications in published.items():
            pairs = zip(accepted[one], publications, strict=True)
            one.result = [repeats.answer_sent(each, publication, batch.now) for each, publication in pairs]


async def _level_of(delay: delays.Delay | None) -> Level | None:
    """The wait at a delay level; None for a message that is visible at once or waits in a timer."""
    if delay is None or delay.level is None or not (seconds := delays.seconds_of_level(delay.level)):
        return None
    level = delays.known_level(delay.level)
    schedule = await topics.own(topics.SCHEDULE, queues=level)
    return Level(schedule.id, delays.queue_of(level), seconds)


def _timer_of(delay: delays.Delay | None) -> Timer | None:
    """The wait in a timer; None for a message that is visible at once or waits at a delay level."""
    return None if delay is None or delay.level is not None else Timer(new_id(), delay)
