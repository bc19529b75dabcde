"""Receive: hands a group's next messages to one of its consumers and hides them from the others for a while."""

import asyncio
import secrets
import time
from typing import Any

import msgspec
from django.conf import settings

from delivery import deliveries, filters, groups, receipts
from delivery.deliveries import Queue, Take, Taken
from delivery.groups import GroupFacts
from delivery.takes import TAKES
from store import groupcommit, topics, wakeups
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


async def receive(group_name: str, request: Receive, gone: asyncio.Future[Any] | None = None) -> list[dict[str, Any]]:
    """A group's next messages of a topic, at most `max_messages`, hidden from the group for `invisible_seconds`.

    Waits up to `wait_seconds` for the first one, and not for a consumer that is `gone`: what it got would be hidden for
    nothing. A waiting consumer costs no connection. Raises a Refusal when a rule
    is broken or the database is away.
    """
    deadline = time.monotonic() + request.wait_seconds
    while gone is None or not gone.done():
        # Judged each time: while it waits, the group may be paused, or taken away with its topic.
        take = await _judge(group_name, request)
        with wakeups.attending({topic_id for topic_id, _ in take.queues}, take.group.id) as attention:
            taken: list[Taken] = [] if take.group.paused else await groupcommit.submit(TAKES, take)
            left = deadline - time.monotonic()
            if taken or left <= 0:
                origins = await topics.names({one.row.topic_id for one in taken}) if take.of_dead_letters else {}
                return [deliveries.given_out(take, one, origins) for one in taken]
            if not take.more:
                pause = LOOK_AGAIN_ORDERED_SECONDS if take.group.ordered else LOOK_AGAIN_SECONDS
                await attention.wait(min(left, pause), gone)
    return []


async def _judge(group_name: str, request: Receive) -> Take:
    topic = await topics.for_reading(request.topic)
    wants = filters.parse(request.filter)
    max_messages = settings.MAX_RECEIVE_MESSAGES if request.max_messages is None else request.max_messages
    if not 1 <= max_messages <= settings.MAX_RECEIVE_MESSAGES:
        raise MessageIllegal(f"max_messages {max_messages} is not between 1 and {settings.MAX_RECEIVE_MESSAGES}.")
    if not 0 <= request.wait_seconds <= settings.MAX_WAIT_SECONDS:
        raise MessageIllegal(f"wait_seconds {request.wait_seconds} is not between 0 and {settings.MAX_WAIT_SECONDS}.")
    invisible = receipts.judge_invisible(request.invisible_seconds)
    group = await groups.for_consuming(group_name)
    return Take(
        group=group,
        topic=topic,
        queues=await _queues_of(group, topic),
        wants=wants,
        max_messages=max_messages,
        invisible_seconds=invisible,
    )


async def _queues_of(group: GroupFacts, topic: TopicFacts) -> list[Queue]:
    """A retried message comes before new ones; the topic's own queues take turns at being first."""
    retry = await groups.retry_topic(group.name)
    own = [(topic.id, queue_id) for queue_id in range(topic.queues)]
    first = secrets.randbelow(len(own))
    return [(retry.id, await groups.retry_queue_of(group.id, group.name, topic.id)), *own[first:], *own[:first]]
