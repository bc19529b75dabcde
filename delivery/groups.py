"""Consumer groups by name, remembered for a moment by each process, and the queues that each of them reads."""

from dataclasses import dataclass
from typing import Any

from store import database, topics
from store.groups import Groups
from store.memory import Memory
from store.statements import Statement
from store.topics import TopicFacts

FIND_CONSUMER_GROUP = Statement(__file__, "find_consumer_group")
CREATE_CONSUMER_GROUP = Statement(__file__, "create_consumer_group")
FIND_RETRY_QUEUE = Statement(__file__, "find_retry_queue")
CREATE_RETRY_QUEUE = Statement(__file__, "create_retry_queue")

# %RETRY% and %DLQ% go in front of it in a topic's name.
MAX_NAME = 120
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


_groups = Groups("consumer", MAX_NAME, GroupFacts, FIND_CONSUMER_GROUP, CREATE_CONSUMER_GROUP)
_retry_queues: Memory[tuple[int, int], int] = Memory(RETRY_QUEUE_BELIEVED_SECONDS)

is_name = _groups.is_name
find = _groups.find
existing = _groups.existing
absent = _groups.absent
forget = _groups.forget


def judge_name(name: str) -> None:
    """Raises MessageIllegal unless the name is one that a group may have."""
    _groups.judge_name(name, "consumer group")


async def for_consuming(name: str) -> GroupFacts:
    """The group that receives; made at its first use where AUTO_CREATE_TOPICS is on.

    Raises MessageIllegal or GroupNotExist.
    """
    judge_name(name)
    return await _groups.at_first_use(name)


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
