"""The health of the database: pinned snapshots, connections, dead rows of hot tables, size of segments on disk."""

from collections.abc import Sequence
from datetime import datetime

from store.db import sync
from store.db.statements import Statement
from store.rows import Connections, Followers, HotTable, SegmentSize, Snapshot

# The tables whose rows are deleted soon after they are written: their dead rows slow the message path down.
HOT_TABLES = (
    *("half_message", "receipt", "bundle", "timer", "recall"),
    *("endpoint", "subscription", "queue_floor", "waiting", "pace"),
)
MAX_ROWS = 50


OLDEST_SNAPSHOTS = Statement(__file__, "oldest_snapshots", Snapshot)
COUNT_CONNECTIONS = Statement(__file__, "count_connections", Connections)
HOT_TABLES_STATS = Statement(__file__, "hot_tables", HotTable)
SEGMENT_SIZES = Statement(__file__, "segment_sizes", SegmentSize)
READ_FOLLOWERS = Statement(__file__, "read_followers", Followers)
READ_CLOCK = Statement(__file__, "read_clock", one=datetime)


def snapshots() -> Sequence[Snapshot]:
    """The pinned snapshots of this database, the oldest first. Only a superuser sees sessions of other users."""
    return sync.read(OLDEST_SNAPSHOTS, {"max_rows": 5})


def connections() -> Sequence[Connections]:
    """The connections of the server by application and state, the most first."""
    return sync.read(COUNT_CONNECTIONS, {"max_rows": MAX_ROWS})


def hot_tables() -> Sequence[HotTable]:
    """The hot tables, the table with the most dead rows first."""
    return sync.read(HOT_TABLES_STATS, {"names": list(HOT_TABLES)})


def segments() -> Sequence[SegmentSize]:
    """The segments that are not dropped, the latest first, with their sizes."""
    return sync.read(SEGMENT_SIZES, {"max_rows": MAX_ROWS})


def followers(alias: str) -> Followers:
    """The standbys of a cell's server, by Django's alias of its database."""
    [found] = sync.read_of(alias, READ_FOLLOWERS)
    return found
