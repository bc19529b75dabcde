"""Dead letters as pages list them: the groups that have any, what the letters of one share, and narrowed lists."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from delivery import registry
from delivery.models import ConsumerGroup
from delivery.rows import SharedByDeadLetters
from store import registry as topic_registry
from store.db import sync
from store.db.statements import Statement
from store.naming import cells, topics

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
    message_id: UUID | None


class ListedDeadLetter(NamedTuple):
    """A dead letter of a list, without its body; None from `queue_offset` on beside `go_on_before` without a match."""

    go_on_before: int | None
    queue_offset: int | None
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


@dataclass(frozen=True, slots=True)
class Page:
    """Dead letters, the latest first, and the offset before which the next page starts; None after the last one.

    A page may hold fewer than were asked for, even none, although there are more: see MAX_LOOKED_AT.
    """

    letters: list[ListedDeadLetter]
    before: int | None


def groups() -> Sequence[GroupDeadLetters]:
    """The first MAX_GROUPS consumer groups with dead letters, those with the most first."""
    limits = {"prefix": topics.DEAD_LETTER_PREFIX, "max_groups": MAX_GROUPS}
    found = cells.ask(lambda: sync.read(COUNT_DEAD_LETTERS, limits))
    return cells.together(found.values(), lambda row: row.group_name, _both, lambda row: row.letters)[:MAX_GROUPS]


def _both(one: GroupDeadLetters, other: GroupDeadLetters) -> GroupDeadLetters:
    return GroupDeadLetters(one.group_name, one.letters + other.letters, max(one.last_dead_at, other.last_dead_at))


def page(group: ConsumerGroup, wanted: Wanted, before: int | None, count: int) -> Page:
    """`count` dead letters of a group at most, the latest first, or those before an offset."""
    parameters = {**asdict(wanted), "before": BEYOND if before is None else before}
    rows = _read(LIST_DEAD_LETTERS, group, max_looked_at=MAX_LOOKED_AT, max_rows=count + 1, **parameters)
    if not rows:
        return Page([], None)
    letters = [row for row in rows if row.queue_offset is not None]
    if len(letters) > count:
        return Page(letters[:count], letters[count - 1].queue_offset)
    return Page(letters, rows[0].go_on_before)


def end(group: ConsumerGroup) -> int:
    """The offset behind a group's last dead letter."""
    topic = registry.dead_letter_topic(group.name)
    return topic_registry.bounds(topic)[0].max_offset if topic else 0


def heads(group: ConsumerGroup, from_offset: int, until_offset: int, count: int) -> Sequence[DeadLetterHead]:
    """A group's dead letters between two offsets, the oldest `count`, without their bodies."""
    between = {"from_offset": from_offset, "until_offset": until_offset}
    return _read(NEXT_DEAD_LETTERS, group, max_entries=count, **between)


def count(group: ConsumerGroup, until_offset: int, max_count: int) -> int:
    """A group's dead letters below an offset, counted up to `max_count`."""
    rows = _read(COUNT_LETTERS_LEFT, group, until_offset=until_offset, max_count=max_count)
    return rows[0].letters if rows else 0


def narrowed(
    group: ConsumerGroup, wanted: Wanted, between: tuple[int, int], count: int
) -> tuple[list[UUID], int | None]:
    """The oldest `count` messages at most that match among a group's dead letters between two offsets, and the offset
    at which the search goes on; None behind the last letter. It reads MAX_LOOKED_AT letters, and may find none of them.
    """
    parameters = {**asdict(wanted), "from_offset": between[0], "until_offset": between[1]}
    rows = _read(NARROW_DEAD_LETTERS, group, max_looked_at=MAX_LOOKED_AT, max_rows=count, **parameters)
    if not rows:
        return [], None
    found = [(row.queue_offset, row.message_id) for row in rows if row.queue_offset is not None and row.message_id]
    go_on_at = found[-1][0] + 1 if len(found) == count else rows[0].go_on_at
    return list(dict.fromkeys(message_id for _, message_id in found)), go_on_at


def described(group: ConsumerGroup, message_ids: Sequence[UUID]) -> dict[UUID, DescribedDeadLetter]:
    """These messages as dead letters of a group; one that is none any more is missing."""
    rows = _read(DESCRIBE_DEAD_LETTERS, group, message_ids=list(message_ids))
    # The newest letter of a message stands for it.
    return {row.message_id: row for row in reversed(rows)}


def shared(group: ConsumerGroup) -> dict[str, list[SharedByDeadLetters]]:
    """What the latest MAX_LOOKED_AT dead letters of a group have in common, by the field: the most first."""
    found: dict[str, list[SharedByDeadLetters]] = defaultdict(list)
    for row in _read(SUM_DEAD_LETTERS, group, max_looked_at=MAX_LOOKED_AT, max_rows=MAX_SHARED):
        found[row.field].append(row)
    return dict(found)


def _read(statement: Statement[Row], group: ConsumerGroup, **parameters: object) -> Sequence[Row]:
    """The rows of a statement about a group's dead letters; none while it has had none."""
    topic = registry.dead_letter_topic(group.name)
    return sync.read(statement, {"group_id": group.id, "topic_id": topic.id, **parameters}) if topic else ()
