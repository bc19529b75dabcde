"""Consumer groups by name, remembered for a moment by each process, and the queues that each of them reads."""

import re
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from store import database, topics
from store.errors import GroupNotExist, MessageIllegal
from store.memory import Memory
from store.statements import Statement
from store.topics import TopicFacts

FIND_CONSUMER_GROUP = Statement(__file__, "find_consumer_group")
CREATE_CONSUMER_GROUP = Statement(__file__, "create_consumer_group")
FIND_RETRY_QUEUE = Statement(__file__, "find_retry_queue")
CREATE_RETRY_QUEUE = Statement(__file__, "create_retry_queue")

# %RETRY% and %DLQ% go in front of it in a topic's name.
NAME = re.compile(r"[%|a-zA-Z0-9_-]{1,120}")
BELIEVED_SECONDS = 2.0
# Once given, a retry queue is its topic's for good.
RETRY_QUEUE_BELIEVED_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the message path needs to know of a consumer group."""

    id: int
    name: str
    start_at: str
    ordered: bool
    max_reconsume_times: int | None
    retry_policy: dict[str, Any]
    paused: bool


_by_name: Memory[str, GroupFacts] = Memory(BELIEVED_SECONDS)
# Of thousands that use a new group at once, one makes it, and the others wait for that.
_making: Memory[str, GroupFacts] = Memory(0)
_retry_queues: Memory[tuple[int, int], int] = Memory(RETRY_QUEUE_BELIEVED_SECONDS)


def judge_name(name: str) -> None:
    """Raises MessageIllegal unless the name is one that a group may have."""
    if not NAME.fullmatch(name):
        raise MessageIllegal(f"consumer group {name[:140]!r} is no group name: 1 to 120 letters, digits and % | _ -.")


async def for_consuming(name: str) -> GroupFacts:
    """The group that receives; made at its first use where AUTO_CREATE_TOPICS is on.

    Raises MessageIllegal or GroupNotExist.
    """
    judge_name(name)
    return await find(name) or await _create(name)


async def existing(name: str) -> GroupFacts:
    """The group of this name.

    Raises GroupNotExist when there is none.
    """
    group = await find(name)
    if group is None:
        raise GroupNotExist(f"There is no consumer group {name}: PUT /v1/consumer-groups/{name} makes it.")
    return group


async def find(name: str) -> GroupFacts | None:
    """The group of this name, or None."""

    async def look_up() -> GroupFacts | None:
        # What is no name is nobody's, and may hold what PostgreSQL takes in no text.
        rows = await database.read(FIND_CONSUMER_GROUP, {"name": name}) if NAME.fullmatch(name) else ()
        return GroupFacts(*rows[0]) if rows else None

    return await _by_name.get(name, look_up)


def forget(name: str) -> None:
    """Drops what this process remembers of a group: it was just changed here."""
    _by_name.forget(name)


async def _create(name: str) -> GroupFacts:
    if not settings.AUTO_CREATE_TOPICS:
        raise GroupNotExist(f"There is no consumer group {name}: PUT /v1/consumer-groups/{name} makes it.")

    async def make() -> GroupFacts | None:
        await database.read(CREATE_CONSUMER_GROUP, {"name": name})
        forget(name)
        return await find(name)

    group = await _making.get(name, make)
    assert group is not None
    return group


async def retry_topic(group_name: str) -> TopicFacts:
    """The topic of the messages that the group gets again."""
    return await topics.own(topics.RETRY_PREFIX + group_name, queues=1)


async def dead_letter_topic(group_name: str) -> TopicFacts:
    """The topic of the messages that the group gave up."""
    return await topics.own(topics.DEAD_LETTER_PREFIX + group_name, queues=1)


async def retry_queue_of(group_id: int, group_name: str, topic_id: int) -> int:
    """The queue of the group's retry topic that holds one topic's messages: whoever receives a topic gets its own."""

    async def make() -> int:
        queue_id = await _make_retry_queue(group_id, topic_id)
        await topics.own(topics.RETRY_PREFIX + group_name, queues=queue_id + 1)
        return queue_id

    queue_id = await _retry_queues.get((group_id, topic_id), make)
    assert queue_id is not None
    return queue_id


async def _make_retry_queue(group_id: int, topic_id: int) -> int:
    asked = {"group_id": group_id, "topic_id": topic_id}
    while not (rows := await database.read(FIND_RETRY_QUEUE, asked)):
        # Whoever loses the race for a number finds nothing and takes the next one.
        await database.read(CREATE_RETRY_QUEUE, asked)
    return int(rows[0].queue_id)
