"""RocketMQ's two topics of transactions as views of tables: half messages, and the ends that decided them.

Each view has one queue, 0. The offset of a half message is its log offset, the offset of an end is the id of its
operation; both grow and have gaps. Nothing is copied: a half message is read from the log, and an end is made from its
operation.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import UNSET

from store import messages
from store.db import connections
from store.db.statements import Statement
from store.errors import OffsetOutOfRange, QueueIllegal, require_between
from store.messages import StoredMessage
from store.messages.ids import derived_id
from store.messages.times import exact
from store.naming import names, topic_names
from store.naming.permissions import TopicFacts
from store.process.answer_budget import Hold
from store.process.runtime import CONTROL
from store.reading import holders, lookup
from transactions import groups
from transactions.rows import Bounds, EndFound, HalfFound

HALF = names.HALF_MESSAGES
OP = names.ENDS
NAMES = (HALF, OP)
MAX_MESSAGES = 1000
# The most rows of the log that one request reads. If the log has few half messages, a request reads many rows to find
# some.
MAX_LOOKED_AT = 20_000
# RocketMQ's tag of an end, which means that the half message is to be removed.
REMOVED = "d"


class Placed(NamedTuple):
    """A message of a view at its offset."""

    message: StoredMessage
    offset: int


class View(NamedTuple):
    """The messages of a reading, and where the next reading continues; None at the end."""

    placed: Sequence[Placed]
    go_on_at: int | None


HALF_TOPIC_AHEAD = Statement(__file__, "half_topic_ahead", HalfFound)
HALF_TOPIC_BACK = Statement(__file__, "half_topic_back", HalfFound)
HALF_TOPIC_BY_KEY = Statement(__file__, "half_topic_by_key", HalfFound)
INTERNAL_TOPIC_BOUNDS = Statement(__file__, "internal_topic_bounds", Bounds)
OP_TOPIC_AHEAD = Statement(__file__, "op_topic_ahead", EndFound)
OP_TOPIC_BACK = Statement(__file__, "op_topic_back", EndFound)


def cell_of(name: str, named: str | None) -> int:
    """The cell whose rows the view shows. For arguments and errors see `holders.of_queues`."""
    return holders.of_queues(TopicFacts(0, name, 1, "r", CONTROL, 0), named)


async def bounds(name: str) -> Bounds:
    """The bounds of a view's queue, in the cell that the work has entered."""
    [found] = await connections.read(INTERNAL_TOPIC_BOUNDS, {"of_halves": name == HALF})
    return found


async def ahead(name: str, queue_id: int, offset: int, count: int, hold: Hold) -> tuple[View, Bounds]:
    """The messages of a view from an offset on, at most `count`, and the bounds of its queue.

    There may be fewer messages, because at most MAX_LOOKED_AT rows are read. The bodies count in `hold`. Raises
    QueueIllegal, MessageIllegal, OffsetOutOfRange or SystemBusy.
    """
    if queue_id:
        raise QueueIllegal(f"The topic {name} has no queue {queue_id}: its only queue is 0.")
    require_between("max", count, 1, MAX_MESSAGES)
    ends = await bounds(name)
    if not ends.min_offset <= offset <= ends.max_offset:
        raise OffsetOutOfRange(
            f"Queue 0 of {name} has no offset {offset}: its offsets begin at {ends.min_offset} and end before "
            f"{ends.max_offset}.",
            min_offset=ends.min_offset,
            max_offset=ends.max_offset,
        )
    limits = {"offset": offset, "max_looked_at": MAX_LOOKED_AT, "max_rows": count}
    if name == HALF:
        return await _halves(await connections.read(HALF_TOPIC_AHEAD, limits), count, hold, 1), ends
    return await _ends(await connections.read(OP_TOPIC_AHEAD, limits), count, 1), ends


async def back(name: str, below: int, since: datetime, until: datetime, count: int, hold: Hold) -> View:
    """The messages of a view below an offset, the newest first, that were stored or decided within a time."""
    within = {"since": since, "until": until}
    limits = {"offset": below, "max_looked_at": MAX_LOOKED_AT, "max_rows": count, **within}
    if name == HALF:
        return await _halves(await connections.read(HALF_TOPIC_BACK, limits), count, hold, 0)
    return await _ends(await connections.read(OP_TOPIC_BACK, limits), count, 0)


async def by_key(key: str, below: int, since: datetime, until: datetime, count: int, hold: Hold) -> View:
    """The half messages with a key below an offset, the newest first, that were stored within a time: see `back`."""
    limits = {"offset": below, "max_looked_at": MAX_LOOKED_AT, "max_rows": count, "since": since, "until": until}
    return await _halves(await connections.read(HALF_TOPIC_BY_KEY, {"key": key, **limits}), count, hold, 0)


async def _halves(rows: Sequence[HalfFound], count: int, hold: Hold, step: int) -> View:
    found = [row for row in rows if row.log_offset is not None]
    shown = found[: await lookup.fitting([row.size or 0 for row in found], count, hold)] if found else []
    positions = [(row.segment_id or 0, row.log_offset or 0) for row in shown]
    stored = {row.log_offset: row for row in await lookup.messages_at(positions)}
    names = await topic_names.of_ids({row.topic_id for row in stored.values()})
    producers = await groups.names({row.producer_group_id for row in stored.values() if row.producer_group_id})
    placed = []
    for row in shown:
        if row.log_offset in stored:
            half = stored[row.log_offset]
            message = messages.stored(half, HALF)
            given = {} if message.properties is UNSET else message.properties
            message.properties = {**_of_half(half, names, producers, row.check_times), **given}
            placed.append(Placed(message, half.log_offset))
    is_cut = len(shown) < len(found) or len(found) == count
    last = shown[-1].log_offset if shown and is_cut else None
    return View(placed, rows[0].go_on_at if last is None else last + step)


def _of_half(
    half: messages.MessageRow, names: Mapping[int, str], producers: Mapping[int, str], check_times: int | None
) -> dict[str, str]:
    """RocketMQ's properties of a half message; without the property PGROUP if its group was deleted."""
    group = producers.get(half.producer_group_id or 0)
    return {
        "REAL_TOPIC": names[half.topic_id],
        "REAL_QID": str(half.queue_id),
        **({} if group is None else {"PGROUP": group}),
        "TRAN_MSG": "true",
        "UNIQ_KEY": str(half.message_id),
        **({} if check_times is None else {"TRANSACTION_CHECK_TIMES": str(check_times)}),
    }


async def _ends(rows: Sequence[EndFound], count: int, step: int) -> View:
    found = [row for row in rows if row.operation_id is not None]
    producers = await groups.names({row.producer_group_id for row in found})
    placed = list(_placed_ends(found, producers))
    last = placed[-1].offset if len(placed) == count else None
    return View(placed, rows[0].go_on_at if last is None else last + step)


def _placed_ends(rows: Iterable[EndFound], producers: Mapping[int, str]) -> Iterable[Placed]:
    """The ends in RocketMQ's form: tag `d`, and in the body the offset of the half message in the half topic."""
    for row in rows:
        group = producers.get(row.producer_group_id)
        message = StoredMessage(
            message_id=derived_id(row.transaction_id, OP),
            topic=OP,
            body=",".join(map(str, row.log_offsets)),
            tags=REMOVED,
            transaction_id=row.transaction_id,
            properties={
                **({} if group is None else {"PGROUP": group}),
                "TRANSACTION_CHECK_TIMES": str(row.check_times),
                "STATE": row.decision,
            },
            born_at=exact(row.decided_at),
            stored_at=exact(row.decided_at),
            commit_log_offset=row.log_offsets[0],
        )
        yield Placed(message, row.operation_id or 0)
