"""Dead letters as pages list them: the groups that have any, what the letters of one share, and narrowed lists."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from delivery.models import ConsumerGroup
from delivery.rows import GroupDeadLetters, ListedDeadLetter, SharedByDeadLetters
from store import registry, topics
from store.db import sync
from store.db.statements import Statement

COUNT_DEAD_LETTERS = Statement(__file__, "count_dead_letters", GroupDeadLetters)
LIST_DEAD_LETTERS = Statement(__file__, "list_dead_letters", ListedDeadLetter)
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
    return sync.read(COUNT_DEAD_LETTERS, {"prefix": topics.DEAD_LETTER_PREFIX, "max_groups": MAX_GROUPS})


def page(group: ConsumerGroup, wanted: Wanted, before: int | None, count: int) -> Page:
    """`count` dead letters of a group at most, the latest first, or those before an offset."""
    topic = registry.named(topics.DEAD_LETTER_PREFIX + group.name)
    if topic is None:
        return Page([], None)
    parameters = {
        "group_id": group.id,
        "topic_id": topic.id,
        "topic": wanted.topic,
        "tags": wanted.tags,
        "attempts": wanted.attempts,
        "hour": wanted.hour,
        "reason": wanted.reason,
        "before": BEYOND if before is None else before,
        "max_looked_at": MAX_LOOKED_AT,
        "max_rows": count + 1,
    }
    rows = sync.read(LIST_DEAD_LETTERS, parameters)
    letters = [row for row in rows if row.queue_offset is not None]
    if len(letters) > count:
        return Page(letters[:count], letters[count - 1].queue_offset)
    return Page(letters, rows[0].go_on_before)


def shared(group: ConsumerGroup) -> dict[str, list[SharedByDeadLetters]]:
    """What the latest MAX_LOOKED_AT dead letters of a group have in common, by the field: the most first."""
    topic = registry.named(topics.DEAD_LETTER_PREFIX + group.name)
    found: dict[str, list[SharedByDeadLetters]] = defaultdict(list)
    if topic is not None:
        parameters = {"group_id": group.id, "topic_id": topic.id}
        limits = {"max_looked_at": MAX_LOOKED_AT, "max_rows": MAX_SHARED}
        for row in sync.read(SUM_DEAD_LETTERS, parameters | limits):
            found[row.field].append(row)
    return dict(found)
