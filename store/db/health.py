"""How the database fares: pinned snapshots, connections, dead rows of hot tables, and what segments take on disk."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from store.db import sync
from store.db.statements import Statement

# The tables in which rows come and go: their dead rows slow the message path down.
HOT_TABLES = ("half_message", "receipt", "timer", "recall", "endpoint", "subscription", "queue_floor", "waiting")
MAX_ROWS = 50


class Snapshot(NamedTuple):
    """What pins a snapshot, and for how many transactions and seconds. `seconds` is None of a replication slot."""

    kind: str
    name: str
    state: str | None
    transactions: int
    seconds: float | None


class Connections(NamedTuple):
    """The connections of an application in one state, and how many the server takes in all."""

    application: str
    state: str
    connections: int
    max_connections: int


class HotTable(NamedTuple):
    """A small table in which rows come and go."""

    name: str
    live: int
    dead: int
    vacuumed_at: datetime | None
    bytes: int


class SegmentSize(NamedTuple):
    """What a segment takes on disk, and its commit log of that."""

    id: int
    state: str
    opened_at: datetime | None
    closed_at: datetime | None
    bytes: int
    log_bytes: int


class Followers(NamedTuple):
    """The standbys of the server, by how many bytes of WAL the one furthest behind is, and the last message's number.

    `lag_bytes` is None without a standby, and where the role may not see it.
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
    """The pinned snapshots of this database, the oldest first. Other users' sessions show to a superuser only."""
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
    """What follows the server of a cell, by Django's alias of its database."""
    [found] = sync.read_of(alias, READ_FOLLOWERS)
    return found
