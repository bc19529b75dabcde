"""Limits of undecided transactions: of a producer group, of an API key that has one, and of its namespace.

Up to SMALL_COUNT the transactions are counted for each begin: begins one after another meet the limit exactly. A larger
limit only guards the store, and its count is cached. Begins at the same time may pass either limit by their number.
"""

from typing import NamedTuple

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


class UndecidedCount(NamedTuple):
    """How many transactions of a group are pending, up to a limit."""

    undecided: int


COUNT_UNDECIDED = Statement(__file__, "count_undecided", UndecidedCount)
COUNT_UNDECIDED_OF_KEY = Statement(__file__, "count_undecided_of_key", UndecidedCount)
COUNT_UNDECIDED_WITHIN = Statement(__file__, "count_undecided_within", UndecidedCount)

SMALL_COUNT = 1000
# For how long a count below a larger limit is cached: one up to SMALL_COUNT, and one above, which costs more and
# changes less within seconds.
FEW_CACHED_SECONDS = 0.2
MANY_CACHED_SECONDS = 2.0

# The statement that counts, the id or the name that it counts for, and the limit.
Counted = tuple[Statement[UndecidedCount], int | str, int]


class Counts:
    """What one process knows of the numbers of undecided transactions in one cell: a limit holds in each."""

    def __init__(self) -> None:
        self.home = runtime.here()
        self.cached: TtlCache[Counted, int] = TtlCache(_seconds_of, since_answer=True)
        # Requests that need a small count at the same time share one read.
        self.running: TtlCache[Counted, int] = TtlCache(0)


def _seconds_of(undecided: int) -> float:
    return MANY_CACHED_SECONDS if undecided > SMALL_COUNT else FEW_CACHED_SECONDS


async def of_group(group: ProducerGroupRow) -> RateLimited | None:
    """The refusal of one more undecided transaction of the group, or None when it may have one."""
    counted = _counted(group)
    if not await _is_reached(counted):
        return None
    return RateLimited(
        f"The producer group {group.name} has {counted[2]} undecided transactions, its limit: end some of them first."
    )


def is_known_below(group: ProducerGroupRow, topic: str) -> bool:
    """Whether this process has just counted fewer undecided transactions of the group than its limit, in the cell of
    the topic.

    False, too, for a limit up to SMALL_COUNT: it is counted for each begin.
    """
    cell = None
    if runtime.several:
        if (known := topics.known_for_sending(topic)) is None:
            return False
        cell = known.cell_id
    counted = _counted(group)
    undecided = runtime.part_of(cell, Counts).cached.known(counted)
    return undecided is not None and undecided < counted[2]


async def look_up(group_name: str, topic_name: str) -> None:
    """Looks a producer group up, and how many undecided transactions it has beside the topic, so that both are known.

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
    """The refusal of one more undecided transaction of an API key or its namespace, or None when it may have one."""
    if allowance is None:
        return None
    within = allowance.shared
    return await _of(allowance, COUNT_UNDECIDED_OF_KEY, allowance.id) or (
        None if within is None else await _of(within, COUNT_UNDECIDED_WITHIN, within.name)
    )


async def _of(one: Allowance, statement: Statement[UndecidedCount], counted: int | str) -> RateLimited | None:
    if one.max_undecided is None or not await _is_reached((statement, counted, one.max_undecided)):
        return None
    one.refused += 1
    return RateLimited(
        f"{one.named} has {one.max_undecided} undecided transactions, its limit: end some of them "
        f"first, or have its max_undecided raised at {one.way_out}."
    )


def counted_key(allowance: Allowance | None) -> int | None:
    """The key that a transaction names: None for one without a limit of them, whose transactions need no counting."""
    return None if allowance is None or allowance.max_undecided is None else allowance.id


async def _is_reached(counted: Counted) -> bool:
    statement, id_, limit = counted
    counts = runtime.part(Counts)

    async def count() -> int:
        # It is counted again by whichever request finds the number old.
        with counts.home.entered():
            name = "name" if isinstance(id_, str) else "id"
            rows = await connections.read(statement, {name: id_, "max_count": limit})
        return rows[0].undecided

    undecided = await (counts.running if limit <= SMALL_COUNT else counts.cached).get(counted, count) or 0
    return undecided >= limit
