"""Limits of undecided transactions: of a producer group, of an API key that has one, and of its namespace.

For a limit up to SMALL_COUNT, transactions are counted at each begin, so that begins one after another meet the limit
exactly. A larger limit only protects the store, and its count is cached for FEW_CACHED_SECONDS or MANY_CACHED_SECONDS.
For a limit of at least FAR_LIMIT the longer time always applies: the begins within this time are too few to raise a
small count to the limit. Begins at the same time may exceed each limit by their number.
"""

from access.key_limits import Allowance
from store.db import connections
from store.db.statements import Statement
from store.db.ttl_cache import TtlCache
from store.errors import RateLimited
from store.naming import topics
from store.process import runtime
from store.process.configuration import setting
from transactions import groups
from transactions.rows import ProducerGroupRow

COUNT_UNDECIDED = Statement(__file__, "count_undecided", one=int)
COUNT_UNDECIDED_OF_KEY = Statement(__file__, "count_undecided_of_key", one=int)
COUNT_UNDECIDED_WITHIN = Statement(__file__, "count_undecided_within", one=int)

SMALL_COUNT = 1000
# For a limit above SMALL_COUNT, the count is cached for FEW_CACHED_SECONDS if it is at most SMALL_COUNT, else for
# MANY_CACHED_SECONDS, because a large count costs more to read and changes relatively less.
FEW_CACHED_SECONDS = 0.2
MANY_CACHED_SECONDS = 2.0
# From this limit on the longer time applies: with 0.2 s each begin needed a task whenever the machine was busy.
FAR_LIMIT = 100_000

# The statement that counts, the id or name for which it counts, and the limit.
Counted = tuple[Statement[int], int | str, int]


class Counts:
    """The cached counts of undecided transactions in one cell. Each cell has its own count for a limit."""

    def __init__(self) -> None:
        self.home = runtime.here()
        self._far: TtlCache[Counted, int] = TtlCache(MANY_CACHED_SECONDS, since_answer=True)
        self._near: TtlCache[Counted, int] = TtlCache(_seconds_of, since_answer=True)
        # Requests that need a small count at the same time share one read of the database.
        self._running: TtlCache[Counted, int] = TtlCache(0)

    def of_limit(self, limit: int) -> TtlCache[Counted, int]:
        """The counts that are compared with limits of this size."""
        if limit >= FAR_LIMIT:
            return self._far
        return self._running if limit <= SMALL_COUNT else self._near


def _seconds_of(undecided: int) -> float:
    return MANY_CACHED_SECONDS if undecided > SMALL_COUNT else FEW_CACHED_SECONDS


async def of_group(group: ProducerGroupRow) -> RateLimited | None:
    """The refusal of one more undecided transaction of the group, or None if the group may have one more."""
    counted = _counted(group)
    if not await _is_reached(counted):
        return None
    return RateLimited(
        f"The producer group {group.name} has {counted[2]} undecided transactions, its limit: end some of them first."
    )


def is_known_below(group: ProducerGroupRow, topic: str) -> bool:
    """Whether a cached count of the group's undecided transactions, in the cell of the topic, is below the limit.

    Always False for a limit up to SMALL_COUNT, for which each begin counts.
    """
    if (cell := runtime.placement.of_topic(topic, topics.known_for_sending)) is None:
        return False
    counted = _counted(group)
    undecided = runtime.part_of(cell, Counts).of_limit(counted[2]).known(counted)
    return undecided is not None and undecided < counted[2]


async def look_up(group_name: str, topic_name: str) -> None:
    """Looks up a producer group and its number of undecided transactions in the topic's cell, so that both are cached.

    Raises SystemBusy.
    """
    group, topic = await groups.find(group_name), topics.known_for_sending(topic_name)
    if group is not None and topic is not None:
        with runtime.in_cell(topic.cell_id):
            await of_group(group)


def _counted(group: ProducerGroupRow) -> Counted:
    limit = setting("MAX_UNDECIDED_PER_GROUP") if group.max_undecided is None else group.max_undecided
    return COUNT_UNDECIDED, group.id, limit


async def of_key(allowance: Allowance | None) -> RateLimited | None:
    """The refusal of one more undecided transaction of an API key or its namespace, or None if it may have one more."""
    if allowance is None:
        return None
    within = allowance.shared
    return await _of(allowance, COUNT_UNDECIDED_OF_KEY, allowance.id) or (
        None if within is None else await _of(within, COUNT_UNDECIDED_WITHIN, within.name)
    )


async def _of(one: Allowance, statement: Statement[int], counted: int | str) -> RateLimited | None:
    if one.max_undecided is None or not await _is_reached((statement, counted, one.max_undecided)):
        return None
    one.refused += 1
    return RateLimited(
        f"{one.named} has {one.max_undecided} undecided transactions, its limit: end some of them first, or "
        f"raise max_undecided at {one.way_out}."
    )


def counted_key(allowance: Allowance | None) -> int | None:
    """The id of the API key to store with a transaction; None for a key without a limit, which needs no count."""
    return None if allowance is None or allowance.max_undecided is None else allowance.id


async def _is_reached(counted: Counted) -> bool:
    statement, id_, limit = counted
    counts = runtime.part(Counts)

    async def count() -> int:
        # The count is not changed here: it is read again by the next request that finds it too old.
        with counts.home.entered():
            name = "name" if isinstance(id_, str) else "id"
            [undecided] = await connections.read(statement, {name: id_, "max_count": limit})
        return undecided

    undecided = await counts.of_limit(limit).get(counted, count) or 0
    return undecided >= limit
