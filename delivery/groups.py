"""Consumer groups by name, remembered for a moment by each process, and the queues that each of them reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delivery.rows import ConsumerGroupRow, RetryQueueId
from store import progress, runtime, topics
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.db.ttl_cache import TtlCache
from store.errors import GroupNotExist
from store.groups import Groups
from store.topics import RETRY_PREFIX, TopicFacts

CREATE_CONSUMER_GROUP = Statement(__file__, "create_consumer_group")
CREATE_RETRY_QUEUE = Statement(__file__, "create_retry_queue")
FIND_CONSUMER_GROUP = Statement(__file__, "find_consumer_group", ConsumerGroupRow)
FIND_RETRY_QUEUE = Statement(__file__, "find_retry_queue", RetryQueueId)

# %RETRY% and %DLQ% go in front of it in a topic's name.
MAX_NAME = 120
# Once given, a retry queue is its topic's for good.
RETRY_QUEUE_BELIEVED_SECONDS = 600.0

# Entries that one receive looks at in each queue, when a filter passes over most or an ordered group parks them.
MAX_LOOKED_AT = 256


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


class ConsumerGroups(Groups[GroupFacts]):
    """What one process caches of consumer groups."""

    def __init__(self) -> None:
        super().__init__("consumer", MAX_NAME, GroupFacts, FIND_CONSUMER_GROUP, CREATE_CONSUMER_GROUP)
        self.retry_queues: TtlCache[tuple[int, int], int] = TtlCache(RETRY_QUEUE_BELIEVED_SECONDS)


def _groups() -> ConsumerGroups:
    return runtime.part(ConsumerGroups)


def is_name(name: str) -> bool:
    """Whether a group may have this name."""
    return _groups().is_name(name)


async def find(name: str) -> GroupFacts | None:
    """The group of this name, or None."""
    return await _groups().find(name)


async def existing(name: str) -> GroupFacts:
    """The group of this name.

    Raises GroupNotExist when there is none.
    """
    return await _groups().existing(name)


def absent(name: str) -> GroupNotExist:
    """The refusal of a name that no group has."""
    return _groups().absent(name)


def forget(name: str) -> None:
    """Drops what this process caches of a group that was just changed here."""
    _groups().forget(name)


def judge_name(name: str) -> None:
    """Raises MessageIllegal unless the name is one that a group may have."""
    _groups().judge_name(name, "consumer group")


async def for_consuming(name: str) -> GroupFacts:
    """The group that receives; made at its first use where AUTO_CREATE_TOPICS is on.

    Raises MessageIllegal or GroupNotExist.
    """
    judge_name(name)
    return await _groups().at_first_use(name)


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

    queue_id = await _groups().retry_queues.get((group_id, topic_id), make)
    assert queue_id is not None
    return queue_id


async def _make_retry_queue(group_id: int, topic_id: int) -> int:
    asked = {"group_id": group_id, "topic_id": topic_id}
    while not (rows := await connections.read(FIND_RETRY_QUEUE, asked)):
        # Whoever loses the race for a number finds nothing and takes the next one.
        await connections.read(CREATE_RETRY_QUEUE, asked)
    return int(rows[0].queue_id)


def locks_of(group: GroupFacts, topic: TopicFacts, queues: Sequence[tuple[int, int]]) -> set[int]:
    """The locks that make a transaction the only one that moves the group in these queues of the topic and of retries.

    A topic has one for all its queues. One of retries has one per queue: each queue belongs to another topic, and
    receives from two topics need not take turns.
    """
    if topic.name.startswith(RETRY_PREFIX):
        return progress.locks(group.id, queues)
    retries = [queue for queue in queues if queue[0] != topic.id]
    return {progress.topic_lock(group.id, topic.id), *progress.locks(group.id, retries)}


@dataclass(slots=True)
class Position:
    """Where a group stands in a queue while a batch is written."""

    next_offset: int
    max_offset: int
    move: int
    moved: bool

    @classmethod
    def of(cls, row: Row, group: GroupFacts) -> "Position":
        """From the ledger; a group that begins to read the topic starts where `start_at` says, and keeps to that.

        A queue that appears later, as the topic grows, is read from its first entry.
        """
        if row.next_offset is None:
            latest = group.start_at == "latest" and not row.begun
            return cls(row.max_offset if latest else row.min_offset, row.max_offset, 0, latest)
        return cls(max(row.next_offset, row.min_offset), row.max_offset, row.move, False)

    @property
    def lag(self) -> int:
        return self.max_offset - self.next_offset

    def pass_over(self, offset: int) -> None:
        self.next_offset = offset + 1
        self.moved = True
