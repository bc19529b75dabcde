"""Offsets: the reset of a consumer group's progress to another offset."""

from collections import Counter
from collections.abc import Awaitable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self

import msgspec

from access.audit import Outcome
from delivery import groups
from delivery.groups import QueueProgress, locks_of
from delivery.receive import positions, pull
from delivery.rows import GroupFacts
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Note, Operation
from store.db import connections
from store.db.statements import RowType, Statement
from store.errors import MessageIllegal, Refusal
from store.messages import times
from store.naming import topics
from store.naming.topics import TopicFacts
from store.notices import notifier
from store.process import runtime
from store.reading import holders, progress
from store.rows import PositionRow


class Read(Protocol):
    """Reads the rows of a statement: on a connection of the pool, or within a batch's transaction."""

    def __call__(
        self, statement: Statement[RowType], parameters: dict[str, object], /
    ) -> Awaitable[Sequence[RowType]]: ...


class OffsetAtTime(NamedTuple):
    """The first offset of a queue whose entry became visible at a time or after it."""

    queue_id: int
    queue_offset: int


DROP_BUNDLES = Statement(__file__, "drop_bundles")
DROP_RECEIPTS = Statement(__file__, "drop_receipts")
DROP_WAITING = Statement(__file__, "drop_waiting")
OFFSETS_AT_TIME = Statement(__file__, "offsets_at_time", OffsetAtTime)

# A target as text: `earliest`, `latest`, an offset or a time.
Target = str | int | datetime


class ResetOffsets(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The target of a reset: `earliest`, `latest`, a time, or an offset. `cell`: see `holders.of_queues`."""

    topic: str
    to: str | int
    queue_id: int | None = None
    dry_run: bool = False
    cell: str | None = None


class QueueMove(msgspec.Struct, rename={"from_": "from"}):
    """The reset of a queue: numbers of entries that are handed out again (`replayed`) and passed over (`skipped`)."""

    queue_id: int
    from_: int
    to: int
    replayed: int
    skipped: int


class OffsetsReset(msgspec.Struct):
    """The reset of a group's offsets in a topic; for a dry run the reset that would happen."""

    group: str
    topic: str
    dry_run: bool
    results: list[QueueMove]
    replayed: int
    skipped: int


async def reset(group_name: str, request: ResetOffsets, note: Note | None = None) -> OffsetsReset:
    """Moves a group to another offset in the queues of a topic, and drops its deliveries in flight there.

    Raises GroupNotExist, TopicNotExist, QueueIllegal, MessageIllegal, or OffsetOutOfRange with both bounds.
    """
    group = await groups.existing(group_name)
    topic = await topics.for_reading(request.topic)
    queue_ids = list(range(topic.queues)) if request.queue_id is None else [request.queue_id]
    topics.require_queue(topic.name, queue_ids[0], topic.queues)
    wanted = Reset(group, topic, queue_ids, _target(request.to))
    with runtime.in_cell(holders.of_queues(topic, request.cell)):
        if request.dry_run:
            moves = await _moves(connections.read, wanted, await positions.of_queues(group, topic, queue_ids))
        else:
            moves = await writer.run(wanted, note)
            notifier.notify(Counter({topic.id: len(moves)}))
    replayed, skipped = sum(move.replayed for move in moves), sum(move.skipped for move in moves)
    return OffsetsReset(group.name, topic.name, request.dry_run, moves, replayed, skipped)


def _target(to: str | int) -> Target:
    if isinstance(to, int) or to in ("earliest", "latest"):
        return to
    try:
        time = datetime.fromisoformat(to)
        # PostgreSQL does not accept time offsets of 16 hours.
        moment = times.in_utc(time)
    except ValueError as problem:
        raise MessageIllegal(
            f"to {to[:60]!r} is not a place in a queue: give earliest, latest, an offset, or a time such as "
            "2026-01-31T12:00:00Z."
        ) from problem
    if time.tzinfo is None:
        raise MessageIllegal(f"to {to!r} has no time zone: give a time such as 2026-01-31T12:00:00Z.")
    return moment


class Reset(Operation[list[QueueMove]]):
    """A validated reset. Each reset is written separately, under the locks of the group's progress in the topic.

    1. Take the locks, then read the progress.
    2. Find the target offset of each queue; a Refusal changes nothing.
    3. For a group that begins to read the topic, record where it starts in the other queues.
    4. Record the moves, and drop the receipts of the queues: their handles are refused from then on.
    """

    __slots__ = ("group", "queue_ids", "to", "topic")

    def __init__(self, group: GroupFacts, topic: TopicFacts, queue_ids: list[int], to: Target) -> None:
        super().__init__()
        self.group = group
        self.topic = topic
        self.queue_ids = queue_ids
        self.to = to

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        for one in operations:
            try:
                moves = one.result = await _reset(batch, one)
                one.before = {str(move.queue_id): move.from_ for move in moves}
            except Refusal as refusal:
                one.refusal = refusal


def outcomes(reset: Operation[Any]) -> Iterable[Outcome]:
    """The entry of the audit about a reset."""
    assert isinstance(reset, Reset)
    after = reset.refusal or {"topic": reset.topic.name, "queues": reset.result}
    yield Outcome(reset.group.name, after, reset.before)


async def _reset(batch: Batch, wanted: Reset) -> list[QueueMove]:
    queues = [(wanted.topic.id, queue_id) for queue_id in wanted.queue_ids]
    await progress.take(batch, locks_of(wanted.group, wanted.topic, queues))
    rows: Sequence[PositionRow] = await progress.positions(batch, wanted.group.id, queues)
    moves = await _moves(batch.read, wanted, rows)
    await _start_elsewhere(batch, wanted, rows)
    for row, move in zip(rows, moves, strict=True):
        progress.move(batch, wanted.group.id, (row.topic_id, row.queue_id), (row.move or 0) + 1, move.to)
    dropped = {"group_id": wanted.group.id, "topic_id": wanted.topic.id, "queue_ids": wanted.queue_ids}
    # Bundles go before receipts: a delivery that leaves its bundle meanwhile has a receipt by the second statement.
    await batch.read(DROP_BUNDLES, dropped)
    await batch.read(DROP_RECEIPTS, dropped)
    await batch.read(DROP_WAITING, dropped)
    return moves


async def _start_elsewhere(batch: Batch, wanted: Reset, rows: Sequence[PositionRow]) -> None:
    """Records where the group starts in the topic's other queues, if this reset is its first move in the topic.

    Without this record the other queues would count as queues that were added later, and be read from their first
    entry.
    """
    if wanted.group.start_at == "latest" and not any(row.begun for row in rows):
        others = [(wanted.topic.id, queue) for queue in range(wanted.topic.queues) if queue not in wanted.queue_ids]
        for row in await progress.positions(batch, wanted.group.id, others):
            progress.move(batch, wanted.group.id, (row.topic_id, row.queue_id), 1, row.max_offset)


async def _moves(read: Read, wanted: Reset, rows: Sequence[PositionRow]) -> list[QueueMove]:
    """The move of each queue, in the order of the rows.

    Raises OffsetOutOfRange for an offset that a queue does not hold.
    """
    targets = await _targets(read, wanted, rows)
    return [_move(row.queue_id, QueueProgress.of(row, wanted.group).next_offset, targets[row.queue_id]) for row in rows]


def _move(queue_id: int, start: int, target: int) -> QueueMove:
    replayed, skipped = max(start - target, 0), max(target - start, 0)
    return QueueMove(queue_id=queue_id, from_=start, to=target, replayed=replayed, skipped=skipped)


async def _targets(read: Read, wanted: Reset, rows: Sequence[PositionRow]) -> dict[int, int]:
    if isinstance(wanted.to, datetime):
        parameters = {
            "topic_id": wanted.topic.id,
            "time": wanted.to,
            "queue_id": [row.queue_id for row in rows],
            "low": [row.min_offset for row in rows],
            "high": [row.max_offset for row in rows],
        }
        return {row.queue_id: row.queue_offset for row in await read(OFFSETS_AT_TIME, parameters)}
    if isinstance(wanted.to, int):
        for row in rows:
            if not row.min_offset <= wanted.to <= row.max_offset:
                raise pull.out_of_range(wanted.topic.name, row.queue_id, wanted.to, row.min_offset, row.max_offset)
        return {row.queue_id: wanted.to for row in rows}
    return {row.queue_id: row.min_offset if wanted.to == "earliest" else row.max_offset for row in rows}
