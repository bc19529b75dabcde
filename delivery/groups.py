"""Consumer groups by name, cached for seconds, and their progress in the queues that they read."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from delivery.models import ConsumerGroup, RetryQueue
from delivery.rows import GroupFacts
from store.cells import copies
from store.commit.batch import Batch
from store.db import connections
from store.db.statements import Statement
from store.db.ttl_cache import TtlCache
from store.errors import GroupNotExist
from store.naming import topics
from store.naming.cached_groups import Groups
from store.naming.names import MAX_CHARACTERS
from store.naming.topics import RETRY_PREFIX, TopicFacts
from store.process import runtime
from store.queues import Queue
from store.reading import progress
from store.rows import PositionRow


class HeldGroup(NamedTuple):
    """A consumer group that is locked, and so does not change until the transaction ends."""

    id: int
    paused: bool
    ordered: bool
    fair_by: str | None
    limits: Any


HOLD_CONSUMER_GROUPS = Statement(__file__, "hold_consumer_groups", HeldGroup)
CREATE_CONSUMER_GROUP = Statement(__file__, "create_consumer_group")
CREATE_RETRY_QUEUE = Statement(__file__, "create_retry_queue")
FIND_CONSUMER_GROUP = Statement(__file__, "find_consumer_group", GroupFacts)
FIND_RETRY_QUEUE = Statement(__file__, "find_retry_queue", one=int)

# Characters of a group's name. The names of the group's own topics add the prefixes %RETRY% and %DLQ%.
MAX_NAME = MAX_CHARACTERS - len(RETRY_PREFIX)
# A retry queue never changes its topic, so this time only limits the size of the cache.
RETRY_QUEUE_BELIEVED_SECONDS = 600.0

# The most entries that a receive reads in a queue to find messages that pass a filter, or whose key is not parked.
MAX_ENTRIES_READ = 256


class ConsumerGroups(Groups[GroupFacts]):
    """The consumer groups that one process has cached."""

    def __init__(self) -> None:
        super().__init__("consumer", MAX_NAME, FIND_CONSUMER_GROUP, CREATE_CONSUMER_GROUP, ConsumerGroup)
        self.retry_queues: TtlCache[tuple[int, int], int] = TtlCache(RETRY_QUEUE_BELIEVED_SECONDS)


def _groups() -> ConsumerGroups:
    return runtime.control(ConsumerGroups)


def validate_name(name: str) -> None:
    """Raises MessageIllegal unless a group may have this name."""
    _groups().validate_name(name, "consumer group")


async def find(name: str) -> GroupFacts | None:
    """The group of this name, or None."""
    return await _groups().find(name)


def known(name: str) -> GroupFacts | None:
    """The group of this name from this process's cache; None when it is not cached."""
    return _groups().known(name)


async def existing(name: str) -> GroupFacts:
    """The group of this name.

    Raises GroupNotExist when there is none.
    """
    return await _groups().existing(name)


async def for_consuming(name: str) -> GroupFacts:
    """The group for a receive; with AUTO_CREATE_TOPICS a missing group is created.

    Raises MessageIllegal or GroupNotExist.
    """
    validate_name(name)
    return await _groups().at_first_use(name)


def absent(name: str) -> GroupNotExist:
    """The refusal for a group name that does not exist."""
    return _groups().absent(name)


def forget(name: str) -> None:
    """Drops this process's cached copy of a group; called after this process has changed the group."""
    _groups().forget(name)


async def hold(batch: Batch, ids: Collection[int]) -> dict[int, HeldGroup]:
    """The existing groups of these ids, read and locked: no other transaction changes them until the batch ends."""
    return {row.id: row for row in await batch.read(HOLD_CONSUMER_GROUPS, {"ids": sorted(ids)})}


async def retry_topic(group_name: str) -> TopicFacts:
    """The topic in which the group's retries wait, %RETRY%<group>."""
    return await topics.own(topics.RETRY_PREFIX + group_name, queues=1)


async def dead_letter_topic(group_name: str) -> TopicFacts:
    """The topic of the group's dead letters, %DLQ%<group>."""
    return await topics.own(topics.DEAD_LETTER_PREFIX + group_name, queues=1)


async def retry_queue_of(group_id: int, group_name: str, topic_id: int) -> int:
    """The number of the retry topic's queue that holds the retries of one topic: a receive of the
    topic also reads it.
    """

    async def create() -> int:
        queue_id = await _create_retry_queue(group_id, topic_id)
        await topics.own(topics.RETRY_PREFIX + group_name, queues=queue_id + 1)
        return queue_id

    queue_id = await _groups().retry_queues.get((group_id, topic_id), create)
    assert queue_id is not None
    return queue_id


async def _create_retry_queue(group_id: int, topic_id: int) -> int:
    parameters = {"group_id": group_id, "topic_id": topic_id}
    while not (found := await connections.read_control(FIND_RETRY_QUEUE, parameters)):
        # If another process has just taken the number, nothing is inserted, and the next number is tried.
        await copies.first_use(CREATE_RETRY_QUEUE, parameters, RetryQueue, **parameters)
    return found[0]


def locks_of(group: GroupFacts, topic: TopicFacts, queues: Sequence[Queue]) -> set[int]:
    """Keys of the advisory locks that a transaction holds to move the group in queues of a topic and of its retries.

    A topic has one lock for all its queues. A retry topic has one lock per queue: each queue belongs to another topic,
    and receives from two topics do not wait for each other.
    """
    if topic.name.startswith(RETRY_PREFIX):
        return progress.locks(group.id, queues)
    retries = [queue for queue in queues if queue[0] != topic.id]
    return {progress.topic_lock(group.id, topic.id), *progress.locks(group.id, retries)}


@dataclass(slots=True)
class QueueProgress:
    """A group's progress in a queue, while a batch is written. `move` is the number of the last move in it."""

    next_offset: int
    max_offset: int
    move: int
    moved: bool

    @classmethod
    def of(cls, row: PositionRow, group: GroupFacts) -> Self:
        """The group's progress, read from the ledger. If the group begins to read the topic, `start_at` decides where;
        a start at the latest entry is recorded as a move. A queue that is added to the topic later is read from its
        first entry.
        """
        if row.next_offset is None or row.move is None:
            latest = group.start_at == "latest" and not row.begun
            return cls(row.max_offset if latest else row.min_offset, row.max_offset, 0, latest)
        return cls(max(row.next_offset, row.min_offset), row.max_offset, row.move, False)

    @property
    def lag(self) -> int:
        """The number of entries that the group was not handed yet."""
        return self.max_offset - self.next_offset

    def pass_over(self, offset: int) -> None:
        """Moves the group's progress past an entry."""
        self.next_offset = offset + 1
        self.moved = True
