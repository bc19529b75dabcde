"""Receive: hands a group's next messages to one of its consumers and hides them from the others for a while."""

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.conf import settings

from delivery import filters, groups, receipts, returns
from delivery.filters import Filter
from delivery.groups import GroupFacts
from delivery.receive import deliveries
from delivery.receive.deliveries import Queue, Take, Taken
from delivery.receive.handout import TAKES
from store import notifier, topics
from store.budget import Hold
from store.commit import writer
from store.errors import MessageIllegal
from store.topics import TopicFacts

# A waiting consumer looks again by itself: a wake-up is a help, not a promise. What an ordered group holds back becomes
# due without one.
LOOK_AGAIN_SECONDS = 5.0
LOOK_AGAIN_ORDERED_SECONDS = 0.5


class Receive(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a consumer asks for."""

    topic: str
    filter: Any = None
    max_messages: int | None = None
    invisible_seconds: float | None = None
    wait_seconds: float = 0


@dataclass(frozen=True, slots=True)
class Received:
    """What a receive got; each entry is made when it is iterated."""

    group: str
    taken: Sequence[Taken] = ()
    take: Take | None = None
    origins: Mapping[int, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for taken in self.taken:
            assert self.take is not None
            yield deliveries.given_out(self.take, taken, self.origins)

    async def given_back(self, gone: asyncio.Future[Any] | None) -> bool:
        """Gives the deliveries back if their consumer is `gone`: at once they are handed out as if they never were.

        Called again right before an answer is written. What a connection loses after that comes again as any delivery
        does. Raises GroupNotExist or SystemBusy.
        """
        if gone is None or not gone.done() or not self.taken:
            return False
        await returns.give_back(self.group, [entry["receipt_handle"] for entry in self], 0)
        return True


async def receive(group_name: str, request: Receive, gone: asyncio.Future[Any] | None = None) -> list[dict[str, Any]]:
    """As `entries`, whole."""
    with Hold() as hold:
        return list(await entries(group_name, request, hold, gone))


async def entries(group_name: str, request: Receive, hold: Hold, gone: asyncio.Future[Any] | None = None) -> Received:
    """A group's next messages of a topic, at most `max_messages`, hidden from the group for `invisible_seconds`.

    Each is made when it is asked for; their bodies count in `hold`. Waits up to `wait_seconds` for the first one, and
    not for a consumer that is `gone`: what it got would be hidden for nothing, and is given back. A waiting consumer
    costs no connection. Raises a Refusal when a rule is broken, too many answers are in flight, or the database is
    away.
    """
    deadline = time.monotonic() + request.wait_seconds
    wish = Wish.of(group_name, request)
    # Once: a topic that is deleted while the receive waits stays deleted.
    await topics.for_consuming(request.topic)
    while gone is None or not gone.done():
        # Looked up each time: while it waits, the group may be paused, or taken away with its topic.
        take = await wish.take()
        take.hold = hold
        await hold.room()
        with notifier.listening({topic_id for topic_id, _ in take.queues}, take.group.id) as waiter:
            taken: list[Taken] = [] if take.group.paused else await writer.submit(TAKES, take)
            left = deadline - time.monotonic()
            if taken or left <= 0:
                origins = await topics.names({one.row.topic_id for one in taken}) if take.of_dead_letters else {}
                received = Received(group_name, taken, take, origins)
                return Received(group_name) if await received.given_back(gone) else received
            if not take.more:
                pause = LOOK_AGAIN_ORDERED_SECONDS if take.group.ordered else LOOK_AGAIN_SECONDS
                await waiter.wait(min(left, pause), gone)
    return Received(group_name)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a receive asks for, judged by itself, before anything is looked up or made for it."""

    group: str
    topic: str
    wants: Filter | None
    max_messages: int
    invisible_seconds: float

    @classmethod
    def of(cls, group_name: str, request: Receive) -> "Wish":
        """Raises MessageIllegal or FilterIllegal."""
        groups.judge_name(group_name)
        wants = filters.parse(request.filter)
        max_messages = settings.MAX_RECEIVE_MESSAGES if request.max_messages is None else request.max_messages
        if not 1 <= max_messages <= settings.MAX_RECEIVE_MESSAGES:
            raise MessageIllegal(f"max_messages {max_messages} is not between 1 and {settings.MAX_RECEIVE_MESSAGES}.")
        if not 0 <= request.wait_seconds <= settings.MAX_WAIT_SECONDS:
            limit = settings.MAX_WAIT_SECONDS
            raise MessageIllegal(f"wait_seconds {request.wait_seconds} is not between 0 and {limit}.")
        return cls(group_name, request.topic, wants, max_messages, receipts.judge_invisible(request.invisible_seconds))

    async def take(self) -> Take:
        """By the group and the topic as they are now. Raises a Refusal where they may not be read."""
        topic = await topics.for_reading(self.topic)
        group = await groups.for_consuming(self.group)
        return Take(
            group=group,
            topic=topic,
            queues=await _queues_of(group, topic),
            wants=self.wants,
            max_messages=self.max_messages,
            invisible_seconds=self.invisible_seconds,
        )


async def _queues_of(group: GroupFacts, topic: TopicFacts) -> list[Queue]:
    """A retried message comes before new ones; the topic's own queues take turns at being first."""
    retry = await groups.retry_topic(group.name)
    own = [(topic.id, queue_id) for queue_id in range(topic.queues)]
    first = secrets.randbelow(len(own))
    return [(retry.id, await groups.retry_queue_of(group.id, group.name, topic.id)), *own[first:], *own[:first]]
