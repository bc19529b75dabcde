"""Dead letters as pages list them: the groups that have any, what the letters of one share, and narrowed lists."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from delivery import registry
from delivery.models import ConsumerGroup
from delivery.rows import SharedByDeadLetters
from store import stats
from store.cells import cells
from store.db import sync
from store.db.statements import Statement
from store.models import Topic
from store.naming import namespaces, topics
from store.process import runtime
from store.reading import merging
from store.reading.merging import Page, Part

Row = TypeVar("Row")


class DescribedDeadLetter(NamedTuple):
    """What a preview says of a dead letter; `topic` is None once that was deleted."""

    queue_offset: int
    message_id: UUID
    topic: str | None
    keys: list[str] | None
    reconsume_times: int
    reason: str | None


class NarrowedDeadLetter(NamedTuple):
    """A dead letter that matches a filter; None from `queue_offset` on beside `go_on_at` without a match."""

    go_on_at: int | None
    queue_offset: int | None
    origin_topic_id: int | None
    message_id: UUID | None


class ListedDeadLetter(NamedTuple):
    """A dead letter of a list, without its body; None from `queue_offset` on beside `go_on_before` without a match."""

    go_on_before: int | None
    queue_offset: int | None
    origin_topic_id: int | None
    message_id: UUID | None
    topic: str | None
    tags: str | None
    keys: list[str] | None
    reconsume_times: int | None
    dead_at: datetime | None
    size: int | None
    reason: str | None


class DeadLetterHead(NamedTuple):
    """A dead letter without its message's fields: what a redrive needs of it."""

    queue_offset: int
    tags_code: int
    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    message_id: UUID


class LetterCount(NamedTuple):
    """How many dead letters there are, up to a limit."""

    letters: int


class GroupDeadLetters(NamedTuple):
    """A consumer group that has dead letters, their number, and when the last one died."""

    group_name: str
    letters: int
    last_dead_at: datetime


COUNT_LETTERS_LEFT = Statement(__file__, "count_letters_left", LetterCount)
NEXT_DEAD_LETTERS = Statement(__file__, "next_dead_letters", DeadLetterHead)
COUNT_DEAD_LETTERS = Statement(__file__, "count_dead_letters", GroupDeadLetters)
DESCRIBE_DEAD_LETTERS = Statement(__file__, "describe_dead_letters", DescribedDeadLetter)
LIST_DEAD_LETTERS = Statement(__file__, "list_dead_letters", ListedDeadLetter)
NARROW_DEAD_LETTERS = Statement(__file__, "narrow_dead_letters", NarrowedDeadLetter)
SUM_DEAD_LETTERS = Statement(__file__, "sum_dead_letters", SharedByDeadLetters)

MAX_GROUPS = 1000
# Letters that one page reads for its filter, and the summary for its numbers; some 30 ms.
MAX_LOOKED_AT = 5000
# Values of all fields together.
MAX_SHARED = 400
BEYOND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dead letters to list; None is no condition, and an empty text is none at all: no tags, no reason."""

    topic: str | None = None
    tags: str | None = None
    attempts: int | None = None
    hour: datetime | None = None
    reason: str | None = None


def groups(namespace: str | None = None) -> Sequence[GroupDeadLetters]:
    """The first MAX_GROUPS consumer groups with dead letters, of all or of a namespace, those with the most first."""
    limits = {
        "prefix": topics.DEAD_LETTER_PREFIX,
        "starts": namespaces.starts(namespace),
        "max_groups": MAX_GROUPS,
    }
    found = cells.ask(lambda: sync.read(COUNT_DEAD_LETTERS, limits))
    return cells.together(found.values(), lambda row: row.group_name, _both, lambda row: row.letters)[:MAX_GROUPS]


def _both(one: GroupDeadLetters, other: GroupDeadLetters) -> GroupDeadLetters:
    return GroupDeadLetters(one.group_name, one.letters + other.letters, max(one.last_dead_at, other.last_dead_at))


def page(
    group: ConsumerGroup, wanted: Wanted, after: Mapping[int, int] | None, count: int
) -> Page[ListedDeadLetter, int]:
    """`count` dead letters of a group at most, the latest first, or those before an offset in each cell.

    A page may hold fewer than were asked for, even none, although there are more: see MAX_LOOKED_AT.
    """
    topic, narrowing = registry.dead_letter_topic(group.name), asdict(wanted)

    def read(before: int, most: int) -> Part[ListedDeadLetter, int]:
        limits = {"before": before, "max_looked_at": MAX_LOOKED_AT, "max_rows": most + 1}
        rows = _read(LIST_DEAD_LETTERS, group, topic, **narrowing, **limits)
        letters = [(row, row.queue_offset) for row in rows if row.queue_offset is not None]
        if len(letters) > most:
            return Part(letters[:most], letters[most - 1][1])
        return Part(letters, rows[0].go_on_before if rows else None)

    cursors = merging.from_start(BEYOND) if after is None else after
    return merging.page(read, cursors, count, lambda row, _: row.dead_at, _topic_of)


def ends(group: ConsumerGroup) -> dict[int, int]:
    """The offset behind a group's last dead letter in each cell. Raises CellAway."""
    topic = registry.dead_letter_topic(group.name)
    return cells.ask(lambda: stats.bounds([(topic.id, 0)])[0].max_offset if topic else 0)


def heads(
    group: ConsumerGroup, cursors: Mapping[int, int], until: Mapping[int, int], count: int
) -> Page[DeadLetterHead, int]:
    """A group's dead letters between two offsets of each cell, the oldest `count`, cell by cell, without bodies."""
    topic = registry.dead_letter_topic(group.name)

    def read(from_offset: int, most: int) -> Part[DeadLetterHead, int]:
        between = {"from_offset": from_offset, "until_offset": until.get(runtime.here().cell, 0)}
        rows = _read(NEXT_DEAD_LETTERS, group, topic, max_entries=most, **between)
        letters = [(row, row.queue_offset + 1) for row in rows]
        return Part(letters, letters[-1][1] if len(letters) == most else None)

    return merging.page(read, cursors, count, _cell_by_cell, lambda row: (row.topic_id,))


def _cell_by_cell(_row: object, _cursor: int) -> int:
    return 0


def _topic_of(row: ListedDeadLetter | NarrowedDeadLetter) -> tuple[int | None]:
    return (row.origin_topic_id,)


def count(group: ConsumerGroup, until: Mapping[int, int], max_count: int) -> int:
    """A group's dead letters below an offset of each cell, counted up to `max_count`."""
    topic = registry.dead_letter_topic(group.name)

    def read() -> int:
        until_offset = until.get(runtime.here().cell, 0)
        rows = _read(COUNT_LETTERS_LEFT, group, topic, until_offset=until_offset, max_count=max_count)
        return rows[0].letters if rows else 0

    return min(sum(cells.ask(read).values()), max_count)


def narrowed(
    group: ConsumerGroup, wanted: Wanted, cursors: Mapping[int, int], until: Mapping[int, int], count: int
) -> Page[NarrowedDeadLetter, int]:
    """The oldest `count` dead letters at most that match between two offsets of each cell, cell by cell.

    It reads MAX_LOOKED_AT letters of a cell, and may find none of them.
    """
    topic, narrowing = registry.dead_letter_topic(group.name), asdict(wanted)

    def read(from_offset: int, most: int) -> Part[NarrowedDeadLetter, int]:
        between = {"from_offset": from_offset, "until_offset": until.get(runtime.here().cell, 0)}
        limits = {"max_looked_at": MAX_LOOKED_AT, "max_rows": most}
        rows = _read(NARROW_DEAD_LETTERS, group, topic, **narrowing, **between, **limits)
        found = [(row, row.queue_offset + 1) for row in rows if row.queue_offset is not None]
        if len(found) == most:
            return Part(found, found[-1][1])
        return Part(found, rows[0].go_on_at if rows else None)

    return merging.page(read, cursors, count, _cell_by_cell, _topic_of)


def described(group: ConsumerGroup, message_ids: Sequence[UUID]) -> dict[UUID, DescribedDeadLetter]:
    """These messages as dead letters of a group; one that is none any more is missing."""
    topic = registry.dead_letter_topic(group.name)
    found = cells.ask(lambda: _read(DESCRIBE_DEAD_LETTERS, group, topic, message_ids=list(message_ids)))
    # The newest letter of a message stands for it.
    return {row.message_id: row for rows in found.values() for row in reversed(rows)}


def shared(group: ConsumerGroup) -> dict[str, list[SharedByDeadLetters]]:
    """What the latest MAX_LOOKED_AT dead letters of a group have in common, by the field: the most first."""
    topic = registry.dead_letter_topic(group.name)
    sums = cells.ask(lambda: _read(SUM_DEAD_LETTERS, group, topic, max_looked_at=MAX_LOOKED_AT, max_rows=MAX_SHARED))
    found: dict[str, list[SharedByDeadLetters]] = defaultdict(list)
    for row in cells.together(
        sums.values(),
        lambda row: (row.field, row.shared_value),
        lambda one, other: one._replace(letters=one.letters + other.letters),
        lambda row: row.letters,
    ):
        found[row.field].append(row)
    return dict(found)


def _read(
    statement: Statement[Row], group: ConsumerGroup, topic: Topic | None, /, **parameters: object
) -> Sequence[Row]:
    """The rows of a statement about a group's dead letters; none while it has had none."""
    return sync.read(statement, {"group_id": group.id, "topic_id": topic.id, **parameters}) if topic else ()
