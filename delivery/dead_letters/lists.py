"""Dead letters for the console: the groups that have dead letters, what a group's letters share, filtered lists."""

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
    """The fields of a dead letter that a preview shows; `topic` is None if the topic was deleted."""

    queue_offset: int
    message_id: UUID
    topic: str | None
    keys: list[str] | None
    reconsume_times: int
    reason: str | None


class NarrowedDeadLetter(NamedTuple):
    """A dead letter that matches a filter. Without a match there is one row, in which only `go_on_at` is set."""

    go_on_at: int | None
    queue_offset: int | None
    origin_topic_id: int | None
    message_id: UUID | None


class ListedDeadLetter(NamedTuple):
    """A dead letter of a list, without its body.

    Without a match there is one row, with only `go_on_before`.
    """

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
    """The columns of a dead letter that a redrive needs: where the message is stored, and its topic and queue."""

    queue_offset: int
    tags_code: int
    segment_id: int
    log_offset: int
    topic_id: int
    queue_id: int
    message_id: UUID


class GroupDeadLetters(NamedTuple):
    """A consumer group that has dead letters, their number, and when the latest message died."""

    group_name: str
    letters: int
    last_dead_at: datetime


COUNT_LETTERS_LEFT = Statement(__file__, "count_letters_left", one=int)
NEXT_DEAD_LETTERS = Statement(__file__, "next_dead_letters", DeadLetterHead)
COUNT_DEAD_LETTERS = Statement(__file__, "count_dead_letters", GroupDeadLetters)
DESCRIBE_DEAD_LETTERS = Statement(__file__, "describe_dead_letters", DescribedDeadLetter)
LIST_DEAD_LETTERS = Statement(__file__, "list_dead_letters", ListedDeadLetter)
NARROW_DEAD_LETTERS = Statement(__file__, "narrow_dead_letters", NarrowedDeadLetter)
SUM_DEAD_LETTERS = Statement(__file__, "sum_dead_letters", SharedByDeadLetters)

MAX_GROUPS = 1000
# The most letters that a page reads to find matches, and that the summary counts, in about 30 ms. Older letters are not
# read.
MAX_LOOKED_AT = 5000
# The most values that the summary shows, over all fields together.
MAX_SHARED = 400
BEYOND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of a list of dead letters. None: no condition; an empty text: letters without this value."""

    topic: str | None = None
    tags: str | None = None
    attempts: int | None = None
    hour: datetime | None = None
    reason: str | None = None


def groups(namespace: str | None = None) -> Sequence[GroupDeadLetters]:
    """At most MAX_GROUPS consumer groups with dead letters, of all or of a namespace, the most letters first."""
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
    """The latest `count` dead letters of a group; with `after`, only letters before its offset in each cell.

    A page reads at most MAX_LOOKED_AT letters, so a page that is not the last may have fewer than `count` letters, or
    none.
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
    """The offset after a group's last dead letter in each cell. Raises CellAway."""
    topic = registry.dead_letter_topic(group.name)
    return cells.ask(lambda: stats.bounds([(topic.id, 0)])[0].max_offset if topic else 0)


def heads(
    group: ConsumerGroup, cursors: Mapping[int, int], until: Mapping[int, int], count: int
) -> Page[DeadLetterHead, int]:
    """The oldest `count` dead letters of a group between two offsets of each cell, cell by cell, without bodies."""
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
    """The number of a group's dead letters below an offset of each cell, counted up to `max_count`."""
    topic = registry.dead_letter_topic(group.name)

    def read() -> int:
        until_offset = until.get(runtime.here().cell, 0)
        return sum(_read(COUNT_LETTERS_LEFT, group, topic, until_offset=until_offset, max_count=max_count))

    return min(sum(cells.ask(read).values()), max_count)


def narrowed(
    group: ConsumerGroup, wanted: Wanted, cursors: Mapping[int, int], until: Mapping[int, int], count: int
) -> Page[NarrowedDeadLetter, int]:
    """The oldest `count` dead letters that match, between two offsets of each cell, cell by cell.

    A page reads at most MAX_LOOKED_AT letters of a cell, so it may be empty although later letters match.
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
    """The dead letters of a group with these message ids; a message that is no longer a dead letter is missing."""
    topic = registry.dead_letter_topic(group.name)
    found = cells.ask(lambda: _read(DESCRIBE_DEAD_LETTERS, group, topic, message_ids=list(message_ids)))
    # If a message died several times, its newest dead letter is returned.
    return {row.message_id: row for rows in found.values() for row in reversed(rows)}


def shared(group: ConsumerGroup) -> dict[str, list[SharedByDeadLetters]]:
    """The values that a group's latest MAX_LOOKED_AT dead letters share, by field; the most frequent value first."""
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
    """The rows of a statement about a group's dead letters; no rows for a group that never had a dead letter."""
    return sync.read(statement, {"group_id": group.id, "topic_id": topic.id, **parameters}) if topic else ()
