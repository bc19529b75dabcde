"""The health of the database: pinned snapshots, connections, dead rows of hot tables, size of segments on disk."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from store.db import sync
from store.db.statements import Statement

# The tables whose rows are deleted soon after they are written: their dead rows slow the message path down.
HOT_TABLES = ("half_message", "receipt", "timer", "recall", "endpoint", "subscription", "queue_floor", "waiting")
MAX_ROWS = 50


class Snapshot(NamedTuple):
    """What pins a snapshot, and for how many transactions and seconds. `seconds` is None for a replication slot."""

    kind: str
    name: str
    state: str | None
    transactions: int
    seconds: float | None


class Connections(NamedTuple):
    """The number of connections of an application in one state, and the server's limit for all connections."""

    application: str
    state: str
    connections: int
    max_connections: int


class HotTable(NamedTuple):
    """A small table whose rows are deleted soon after they are written, with its live and dead rows."""

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None
    bytes: int


class SegmentSize(NamedTuple):
    """The size of a segment on disk, and the part of its commit log."""

    id: int
    state: str
    opened_at: datetime | None
    closed_at: datetime | None
    bytes: int
    log_bytes: int


class Followers(NamedTuple):
    """The number of standbys, the WAL that the slowest has still to replay in bytes, and the last message's number.

    `lag_bytes` is None without a standby, or if the role may not read it.
    """

    standbys: int
    lag_bytes: int | None
    last_number: int


OLDEST_SNAPSHOTS = Statement(__file__, "oldest_snapshots", Snapshot)
COUNT_CONNECTIONS = Statement(__file__, "count_connections", Connections)
HOT_TABLES_STATS = Statement(__file__, "hot_tables", HotTable)
SEGMENT_SIZES = Statement(__file__, "segment_sizes", SegmentSize)
READ_FOLLOWERS = Statement(__file__, "read_followers", Followers)


def snapshots() -> Sequence[Snapshot]:
    """The pinned snapshots of this database, the oldest first. Only a superuser sees sessions of other users."""
    return sync.read(OLDEST_SNAPSHOTS, {"max_rows": 5})


def connections() -> Sequence[Connections]:
    """The connections of the server by application and state, the most first."""
    return sync.read(COUNT_CONNECTIONS, {"max_rows": MAX_ROWS})


def hot_tables() -> Sequence[HotTable]:
    """The hot tables, those with the most dead rows first."""
    return sync.read(HOT_TABLES_STATS, {"names": list(HOT_TABLES)})


def segments() -> Sequence[SegmentSize]:
    """The segments that are not dropped, the latest first, with their sizes."""
    return sync.read(SEGMENT_SIZES, {"max_rows": MAX_ROWS})


def followers(alias: str) -> Followers:
    """The standbys of a cell's server, by Django's alias of its database."""
    [found] = sync.read_of(alias, READ_FOLLOWERS)
    return found
