"""Receive: hands a group's next messages to one of its consumers and hides them from the others for a while."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self

import msgspec
from django.conf import settings

from delivery import filters, groups
from delivery.filters import Filter
from delivery.receipts import settling
from delivery.receive import deliveries, discarded, returns
from delivery.receive.deliveries import Delivery, Handout, Receiver
from delivery.receive.fair import kind_of
from delivery.receive.handout import Receiving, hand_out
from delivery.retries import nacks
from delivery.rows import GroupFacts
from store.errors import require_between
from store.naming import topic_names, topics
from store.naming.topics import TopicFacts
from store.notices import notifier
from store.process import runtime
from store.process.answer_budget import Hold
from store.queues import Queue
from store.reading import holders

# A blocked receive reads again after this time, because a wake-up may be lost, and because messages that an ordered
# group holds become due without a wake-up.
READ_AGAIN_SECONDS = 5.0
READ_AGAIN_ORDERED_SECONDS = 0.5


class Receive(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request of a receive. `ack` has receipt handles of deliveries that the consumer has finished."""

    topic: str
    ack: list[str] | None = None
    filter: Any = None
    max_messages: int | None = None
    invisible_seconds: float | None = None
    wait_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Received:
    """The deliveries of a receive; each delivery is made during iteration."""

    group: str
    handout: Handout | None = None
    # The names of the topics to which dead letters and discarded messages were sent, by the topics' ids.
    origins: Mapping[int, str] = field(default_factory=dict)
    # The names of the producer groups of discarded messages, by the groups' ids.
    producers: Mapping[int, str] = field(default_factory=dict)
    # Whether the consumer should handle no other message at the same time as the only delivery.
    alone: bool = False

    def __iter__(self) -> Iterator[Delivery]:
        if self.handout is not None:
            for handed, message in self.handout:
                found = deliveries.answered(self.handout.receiver, handed, message, self.origins, self.producers)
                if self.alone:
                    found.alone = True
                yield found

    async def given_back(self, gone: asyncio.Future[object] | None) -> bool:
        """Returns the deliveries to the group if the consumer's connection is `gone`: they are received again at once.

        Called again just before the answer is written. If the answer is lost later, its messages are redelivered when
        their invisible time is over. Raises GroupNotExist or SystemBusy.
        """
        if gone is None or not gone.done() or self.handout is None or not self.handout.entries:
            return False
        receiver = self.handout.receiver
        await returns.give_back(self.group, [handed.receipt_handle(receiver) for handed in self.handout.entries], 0)
        return True


async def receive(group_name: str, request: Receive, hold: Hold | None = None, *, makes: bool = True) -> list[Delivery]:
    """The result of `entries` as a list. Without a `hold` the bodies count only until the function returns."""
    if hold is not None:
        return list(await entries(group_name, request, hold, makes=makes))
    with Hold() as own:
        return await receive(group_name, request, own, makes=makes)


async def entries(
    group_name: str,
    request: Receive,
    hold: Hold,
    gone: asyncio.Future[object] | None = None,
    require: Callable[[], Awaitable[None]] | None = None,
    *,
    makes: bool = True,
    again_at_once: bool = False,
) -> Received:
    """A group's next messages of a topic, at most `max_messages`, hidden from the group for `invisible_seconds`.

    1. The request is validated before anything is looked up or created.
    2. With `makes`, the topic and the group are created at their first use, once: if they are deleted while the receive
       waits, they are not created again, and the receive is refused.
    3. The group and the topic are looked up again before each read, because they may be paused or deleted meanwhile.
       `require` checks the consumer's key again, and raises a refusal if the key was revoked or narrowed.
    4. Without a message the request is blocked, up to `wait_seconds` in all; a blocked request holds no connection.
    5. When the consumer's connection is `gone`, the deliveries are returned to the group at once.

    `again_at_once`: a message that is not settled within its invisible time is offered again without a retry's delay,
    as RocketMQ's clients expect. The bodies count in `hold`. Raises a Refusal when a rule is broken, too many answers
    are in flight, or the database is away.
    """
    deadline = time.monotonic() + request.wait_seconds
    wanted = await filters.parse_in_turn(request.filter)
    terms = Terms.of(group_name, request, wanted, again_at_once=again_at_once)
    if makes:
        await topics.for_consuming(request.topic)
        await groups.for_consuming(group_name)
    turns = count()
    while gone is None or not gone.done():
        receiver = await terms.receiver(hold, gone, next(turns))
        with runtime.in_cell(receiver.cell):
            received = await _receive_in_cell(receiver, deadline)
        if received is not None:
            return Received(group_name) if await received.given_back(gone) else received
        if require is not None:
            await require()
    return Received(group_name)


async def _receive_in_cell(receiver: Receiver, deadline: float) -> Received | None:
    """The deliveries of one cell; waits for a message unless another cell is read next. None: the caller reads again.

    The database is not read while the process knows that there is no entry; but before an empty answer it is always
    read. While the receive waits, its read may join the batch that stores a message for it.
    """
    hold, group, is_woken = receiver.hold, receiver.group, _is_woken(receiver)
    again_seconds = READ_AGAIN_SECONDS
    with notifier.listening({topic_id for topic_id, _ in receiver.queues}, group.id) as waiter:
        empty_seconds = waiter.empty_seconds if is_woken and time.monotonic() < deadline else None
        if empty_seconds is None or empty_seconds >= READ_AGAIN_SECONDS:
            handout, empty_seconds = await hand_out(receiver, kind_of(receiver)), 0.0
            if handout.is_all:
                waiter.found_all()
            is_cut = hold.is_small and hold.is_large
            is_over = deadline <= time.monotonic() and not is_cut and not receiver.has_next_cell
            if handout.entries or is_over:
                return await of_handout(group.name, handout)
            if handout.more or receiver.has_next_cell:
                hold.set(0)
                return None
            again_seconds = READ_AGAIN_SECONDS if handout.again_seconds is None else handout.again_seconds
        hold.set(0)
        read = Receiving(receiver) if is_woken else None
        is_soon = group.ordered or _is_spread(receiver)
        pause = min(READ_AGAIN_ORDERED_SECONDS if is_soon else READ_AGAIN_SECONDS, again_seconds) - empty_seconds
        await waiter.wait(min(deadline - time.monotonic(), pause), receiver.gone, read)
    if read is None or read.result is None or not read.taken:
        return None
    await read.result.read()
    return await of_handout(group.name, read.result)


def _is_woken(receiver: Receiver) -> bool:
    """Whether a new entry wakes the receive: it takes any entry, of one cell, and the group is not paused."""
    return receiver.is_plain and not receiver.group.paused and not _is_spread(receiver)


def _is_spread(receiver: Receiver) -> bool:
    """Whether several cells hold entries of the topic. Entries of another cell do not wake a request of this cell."""
    return len(holders.of_topic(receiver.topic)) > 1


async def of_handout(group_name: str, handout: Handout) -> Received:
    """The deliveries of a handout, with the names of topics and producer groups for the answer."""
    origin_ids = {message.topic_id for _, message in handout} if handout.receiver.of_others else set()
    producers = await discarded.producers(row for _, row in handout) if handout.receiver.of_discarded else {}
    return Received(group_name, handout, await topic_names.of_ids(origin_ids), producers, await _is_alone(handout))


async def _is_alone(handout: Handout) -> bool:
    """Whether the only delivery is a retry after an unexplained failure. Several deliveries never include a retry."""
    if len(handout.entries) != 1 or not (handed := handout.entries[0]).reconsume_times:
        return False
    return await nacks.is_unexplained(handout.receiver.group.id, handed.log_offset, handed.reconsume_times)


@dataclass(frozen=True, slots=True)
class Terms:
    """The validated parameters of a receive."""

    group: str
    topic: str
    filter: Filter | None
    max_messages: int
    invisible_seconds: float
    again_at_once: bool

    @classmethod
    def of(cls, group_name: str, request: Receive, wanted: Filter | None, *, again_at_once: bool) -> Self:
        """Raises MessageIllegal."""
        groups.validate_name(group_name)
        max_messages = settings.MAX_RECEIVE_MESSAGES if request.max_messages is None else request.max_messages
        require_between("max_messages", max_messages, 1, settings.MAX_RECEIVE_MESSAGES)
        require_between("wait_seconds", request.wait_seconds, 0, settings.MAX_WAIT_SECONDS)
        seconds = settling.invisible_time(request.invisible_seconds)
        return cls(group_name, request.topic, wanted, max_messages, seconds, again_at_once)

    async def receiver(self, hold: Hold, gone: asyncio.Future[object] | None, turn: int) -> Receiver:
        """A receive with the group and the topic as they are now. Raises a Refusal when they may not be read.

        `turn`, from 0, chooses the cell: each turn reads the next of the cells that hold entries of the topic.
        """
        topic = await topics.for_reading(self.topic)
        group = await groups.existing(self.group)
        cells = holders.of_topic(topic)
        return Receiver(
            group=group,
            topic=topic,
            queues=await _queues_of(group, topic),
            filter=self.filter,
            max_messages=self.max_messages,
            invisible_seconds=self.invisible_seconds,
            hold=hold,
            cell=cells[turn % len(cells)],
            has_next_cell=(turn + 1) % len(cells) > 0,
            gone=gone,
            again_at_once=self.again_at_once,
        )


async def _queues_of(group: GroupFacts, topic: TopicFacts) -> list[Queue]:
    """The retry queue, then the topic's queues: from a random queue on, or with `priority` the highest number first."""
    retry = await groups.retry_topic(group.name)
    own = [(topic.id, queue_id) for queue_id in range(topic.queues)]
    if group.queue_order == "priority":
        own.reverse()
    else:
        first = secrets.randbelow(len(own))
        own = [*own[first:], *own[:first]]
    return [(retry.id, await groups.retry_queue_of(group.id, group.name, topic.id)), *own]
