"""Search: a topic's messages by key or by time. Pages have limits, and no page scans a partition."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

from msgspec import Meta

from store import queues
from store.db import connections
from store.db.statements import Statement
from store.errors import MessageIllegal
from store.messages import Time, counted
from store.messages.properties import KEY_RULE, is_key
from store.naming import topics
from store.naming.topics import FIND_TOPICS, TopicFacts
from store.process.answer_budget import Hold
from store.reading import lookup
from store.reading.lookup import Found
from store.rows import KeyMatch, ListedEntry, WalkedKeyMatch

FIND_BY_KEY = Statement(__file__, "find_by_key", KeyMatch)
LIST_ENTRIES = Statement(__file__, "list_entries", ListedEntry)
WALK_LOG_BY_KEY = Statement(__file__, "walk_log_by_key", WalkedKeyMatch)

# The most messages of one key that are sorted for a page, in some 30 ms. A key should name one thing, so few have more.
MAX_OF_KEY = 10_000
# The most messages of the log that one page reads for a key with more than MAX_OF_KEY messages.
MAX_READ = 20_000

BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)
BEYOND = 2**63 - 1


class Match(NamedTuple):
    """A message for a page, before its body is read."""

    segment_id: int
    log_offset: int
    size: int


class Cursor(NamedTuple):
    """Where the next page of a list starts.

    In a list by key: below a log offset. In a list by time: before an entry.
    """

    time: Time = END
    queue_id: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    offset: Annotated[int, Meta(ge=0, le=BEYOND)] = BEYOND


# Messages, the newest first, and where the next page starts; None after the last page. A page may have fewer messages
# than `count`, even none, although more follow: see MAX_READ, MAX_PAGE_BYTES and the budget of answers.
Listed = tuple[Sequence[Found], Cursor | None]


async def topic_of(name: str) -> TopicFacts:
    """The topic of this name, whatever its permission.

    Raises TopicIllegal or TopicNotExist.
    """
    topics.validate_name(name)
    if not (rows := await connections.read_control(FIND_TOPICS, {"names": [name], "ids": []})):
        raise topics.absent(name)
    return rows[0]


async def by_key(
    topic: TopicFacts,
    key: str,
    since: datetime | None,
    until: datetime | None,
    after: Cursor | None,
    count: int,
    hold: Hold,
    *,
    hidden_too: bool,
) -> Listed:
    """A topic's messages with this key that were stored within a time; with `hidden_too` also invisible ones.

    In a topic of the broker's own, and without `hidden_too`: messages with an entry there. For a key of more than
    MAX_OF_KEY messages, a page reads MAX_READ messages of the log, and the next page starts below them.

    The bodies count in `hold`. Raises MessageIllegal for an invalid key, SystemBusy while too many bytes of answers are
    in flight.
    """
    if not is_key(key):
        raise MessageIllegal(f"key {key[:60]!r} is not a valid key: {KEY_RULE}.")
    limits = {
        "topic_id": topic.id,
        "by_entry": topics.is_system(topic.name) or not hidden_too,
        "key": key,
        "since": since or BEGINNING,
        "until": until or END,
        "below": (after or Cursor()).offset,
        "max_rows": count + 1,
    }
    matches, end_of_walk = await _matches_of_key(limits)
    shown = matches[: await lookup.fitting([match.size for match in matches], count, hold)]
    below = shown[-1].log_offset if len(shown) < len(matches) else end_of_walk
    messages = await lookup.messages_at([(match.segment_id, match.log_offset) for match in shown])
    found = await lookup.with_first_entries(messages, topic.id, topic.name)
    return found, None if below is None else Cursor(offset=below)


async def _matches_of_key(limits: dict[str, object]) -> tuple[list[Match], int | None]:
    """The matches, and the offset at which a walk of the log continues; None if the index had all matches."""
    found_by_index = await connections.read(FIND_BY_KEY, {**limits, "max_looked_at": MAX_OF_KEY + 1})
    if found_by_index[0].looked_at <= MAX_OF_KEY:
        return _matches(found_by_index), None
    walked = await connections.read(WALK_LOG_BY_KEY, {**limits, "max_looked_at": MAX_READ})
    return _matches(walked), walked[0].go_on_below


async def by_time(
    topic: TopicFacts, since: datetime | None, until: datetime | None, after: Cursor | None, count: int, hold: Hold
) -> Listed:
    """A topic's entries that became visible within a time, each with its message.

    The bodies count in `hold`. Raises SystemBusy while too many bytes of answers are in flight.
    """
    bounds = await queues.bounds(queues.of_topic(topic.id, topic.queues))
    before, end = after or Cursor(), until or END
    if before.time < end:
        # Entries of the same microsecond may belong to this page, so the statement compares queues and offsets.
        end = before.time + timedelta(microseconds=1)
    limits = {
        "topic_id": topic.id,
        "queue_id": [row.queue_id for row in bounds],
        "low": [row.min_offset for row in bounds],
        "high": [row.max_offset for row in bounds],
        "since": since or BEGINNING,
        "until": end,
        "before_time": before.time,
        "before_queue": before.queue_id,
        "before_offset": before.offset,
        "max_rows": count + 1,
    }
    rows = await connections.read(LIST_ENTRIES, limits)
    shown = rows[: await lookup.fitting([row.size for row in rows], count, hold)]
    positions = [(row.segment_id, row.log_offset) for row in shown]
    messages = {(message.segment_id, message.log_offset): message for message in await lookup.messages_at(positions)}
    found = [
        Found(
            messages[row.segment_id, row.log_offset],
            row.queue_id,
            row.queue_offset,
            counted.of(topic.name, row.reconsume_times),
        )
        for row in shown
        if (row.segment_id, row.log_offset) in messages
    ]
    last = shown[-1] if len(shown) < len(rows) else None
    return found, None if last is None else Cursor(last.entered_at, last.queue_id, last.queue_offset)


def _matches(rows: Sequence[KeyMatch | WalkedKeyMatch]) -> list[Match]:
    """The rows that have a message. A statement without a match returns one row of NULLs, which is left out."""
    return [
        Match(row.segment_id, row.log_offset, row.size)
        for row in rows
        if row.segment_id is not None and row.log_offset is not None and row.size is not None
    ]
