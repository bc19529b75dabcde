"""Deliveries: a receive, the entries that it was handed, and their form in an answer."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET, UnsetType

from delivery.filters import Filter
from delivery.limits import keys
from delivery.receipts import handles
from delivery.receive import discarded
from delivery.retries import nonces
from delivery.rows import GroupFacts
from store import messages
from store.db import connections
from store.messages import MessageRow, StoredMessage
from store.naming.topics import DEAD_LETTER_PREFIX, DISCARDED, RETRY_PREFIX, TopicFacts
from store.process.answer_budget import Hold
from store.queues import Queue
from store.segments import log


class Entry(msgspec.Struct, gc=False):
    """A message at its offset in a queue."""

    message: StoredMessage
    queue_id: int
    queue_offset: int


class Delivery(Entry, gc=False):
    """An entry that was handed to a consumer, hidden from its group until it is acked or its invisible time is over.

    A message that was delivered before is the only message of its answer. `alone` is true when the earlier delivery
    ended without a reason, perhaps because the consumer died: handle no other message at the same time.
    """

    delivery_attempt: int
    receipt_handle: str
    alone: bool | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receive with its group and topic as they are now. `queues`: the queues it reads, the retry queue first."""

    group: GroupFacts
    topic: TopicFacts
    queues: list[Queue]
    filter: Filter | None
    max_messages: int
    invisible_seconds: float
    # The bytes that the answer of this receive occupies, within the limit for all answers of the process.
    hold: Hold
    # `cell`: the cell that this receive reads. `has_next_cell`: the receive reads another cell afterwards, because each
    # cell has its own queues of the broker's own topics.
    cell: int
    has_next_cell: bool
    # A future that is done when the consumer has closed its connection.
    gone: asyncio.Future[object] | None = None
    # Whether a message whose invisible time is over is delivered again at once, without the delay of a retry.
    again_at_once: bool = False

    def new_nonce(self) -> int:
        """A new nonce for a delivery of this receive."""
        return nonces.new_nonce(again_at_once=self.again_at_once)

    @property
    def is_gone(self) -> bool:
        """Whether the consumer has closed its connection, so that no message should be handed out to it."""
        return self.gone is not None and self.gone.done()

    @property
    def is_plain(self) -> bool:
        """Whether the receive takes entries of one topic and its retries in any order: no filter, no sharding order, no
        turns, no limits.
        """
        return self.is_of_own_topic and self.filter is None and not (self.group.ordered or self.reads_ahead)

    @property
    def is_fair(self) -> bool:
        """Whether the receive's group is fair, so that its messages are handed out by turns over their keys."""
        return self.is_of_own_topic and self.group.fair_by is not None

    @property
    def is_limited(self) -> bool:
        """Whether the receive's group has limits, so that messages wait while their value is at its limit."""
        return self.is_of_own_topic and self.group.limits is not None

    @property
    def reads_ahead(self) -> bool:
        """Whether the receive's group is fair or has limits: messages wait by key until they are handed out."""
        return self.is_fair or self.is_limited

    @property
    def key_source(self) -> str:
        """Where a waiting message has its key: `sharding_key`, a property, or `group` if all messages have one key."""
        return keys.source(self.group.fair_by, self.group.limits) or keys.SHARDING_KEY

    @property
    def is_of_own_topic(self) -> bool:
        """Whether the receive reads messages that were sent to its topic, and their retries."""
        return not (self.of_others or self.topic.name.startswith(RETRY_PREFIX))

    @property
    def of_others(self) -> bool:
        """Whether the topic holds messages that were sent to other topics."""
        return self.of_dead_letters or self.of_discarded

    @property
    def of_discarded(self) -> bool:
        """Whether the topic holds the messages of discarded transactions."""
        return self.topic.name == DISCARDED

    @property
    def of_dead_letters(self) -> bool:
        """Whether the topic holds a group's dead letters."""
        return self.topic.name.startswith(DEAD_LETTER_PREFIX)


# The class is not frozen: an object is made for each delivery, and making a frozen object takes three times as long.
@dataclass(slots=True)
class HandedOut:
    """An entry that is handed out: where its message lies, this delivery's nonce, and the retries before it."""

    segment_id: int
    log_offset: int
    body_bytes: int
    queue: Queue
    queue_offset: int
    nonce: int
    reconsume_times: int
    # How often the message was retried before this delivery. For a dead letter of another group: its retries in that
    # group; for a discarded message: its checks.
    died_after: int | None = None

    @property
    def position(self) -> tuple[int, int]:
        """The segment and the log offset of its message."""
        return self.segment_id, self.log_offset

    def receipt_handle(self, receiver: Receiver) -> str:
        """The handle that the group's consumer gets."""
        return handles.handle(receiver.group.id, *self.queue, self.queue_offset, self.nonce, receiver.cell)


@dataclass(slots=True)
class Handout:
    """The entries that one receive is handed; while a batch is written, the entries handed so far."""

    receiver: Receiver
    entries: list[HandedOut] = field(default_factory=list)
    # The messages that were already read, each under its log position.
    messages: Mapping[tuple[int, int], MessageRow] = field(default_factory=dict)
    # Whether no further entry exists: the next read would find nothing.
    is_all: bool = False
    # No entry was handed out, but there are more behind the filtered or too large entries: read again at once, do not
    # wait.
    more: bool = False
    # After how many seconds a value at its limit may be handed messages again; None: no message waits for a limit.
    again_seconds: float | None = None

    def count_bodies(self) -> None:
        """Sets the receive's part of the process's answer bytes to the size of its bodies."""
        size = sum(handed.body_bytes for handed in self.entries)
        if size != self.receiver.hold.size:
            self.receiver.hold.set(size)

    async def read(self) -> None:
        """Reads the messages that are not read yet. Called after the commit: large bodies must not prolong the locks.

        An entry whose message was dropped with its segment is left out; it is retried later. Raises SystemBusy.
        """
        missing = [handed for handed in self.entries if handed.position not in self.messages]
        if not missing:
            return
        rows = await connections.read(log.READ_MESSAGES, log.at([handed.position for handed in missing]))
        self.messages = {**self.messages, **{(row.segment_id, row.log_offset): row for row in rows}}
        self.entries = [handed for handed in self.entries if handed.position in self.messages]
        for handed in missing:
            if (message := self.messages.get(handed.position)) is not None:
                handed.body_bytes = len(message.body)
        self.count_bodies()

    def __iter__(self) -> Iterator[tuple[HandedOut, MessageRow]]:
        return ((handed, self.messages[handed.position]) for handed in self.entries)


def answered(
    receiver: Receiver, handed: HandedOut, row: MessageRow, origins: Mapping[int, str], producers: Mapping[int, str]
) -> Delivery:
    """The delivery in an answer, made of a handed out entry and its message.

    `origins`: by id, the names of the topics that dead letters and discarded messages were sent to. `producers`: by id,
    the names of the producer groups of discarded messages.
    """
    # The answer has the topic to which the message was sent, not the topic of dead letters or discarded messages.
    message = messages.stored(row, origins[row.topic_id] if receiver.of_others else receiver.topic.name)
    message.reconsume_times = handed.reconsume_times
    retries = handed.reconsume_times if handed.died_after is None else handed.died_after
    if receiver.of_discarded and handed.died_after is not None:
        discarded.add_properties(message, row, handed.died_after, producers)
    elif retries or handed.died_after is not None:
        add_retry_properties(message, message.topic, retries)
    return Delivery(
        message,
        handed.queue[1],
        handed.queue_offset,
        handed.reconsume_times + 1,
        handed.receipt_handle(receiver),
    )


def add_retry_properties(message: StoredMessage, origin: str, reconsume_times: int) -> None:
    """Adds the properties that RocketMQ's consumers expect of a retried message and of a dead letter."""
    message.properties = {
        "RETRY_TOPIC": origin,
        "ORIGIN_MESSAGE_ID": str(message.message_id),
        "RECONSUME_TIME": str(reconsume_times),
        **({} if message.properties is UNSET else message.properties),
    }
