"""The broker's surroundings: databases, Redis, disk, exports and processes, with a sentence for each problem."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from django.conf import settings

from console.monitoring import health
from store import stats as store_stats
from store.cells import cells
from store.db import health as database_health
from store.notices import heartbeats
from store.notices.heartbeats import Alive
from store.process import doors, runtime
from store.rows import Connections, ExportWait, HotTable, SegmentSize, Snapshot
from store.segments import exports
from store.segments.exports import Exported

# A snapshot that is held for longer is a problem: the hot tables keep dead rows, and receives and checks get slower.
PINNED_SECONDS = 60.0
# More dead rows than this, and more than live rows, make scans of a hot table slow.
MANY_DEAD = 100_000
CONNECTIONS_SHARE = 0.9
# If retention drops segments that no export has, this is reported as a problem for this time.
DROPPED_HOURS = 24


@dataclass(frozen=True, slots=True)
class Exports:
    """The latest exports of a cell, its segments that wait for an export, and the disk space of all its segments."""

    latest: Sequence[Exported]
    wait: ExportWait
    bytes: int

    def problems(self, now: datetime) -> Iterator[str]:
        """The problems, one sentence each."""
        dropped_at = self.wait.last_dropped_at
        if dropped_at is not None and now - dropped_at < timedelta(hours=DROPPED_HOURS):
            yield (
                f"Retention dropped segments before their export ({self.wait.dropped} so far, the last one at "
                f"{dropped_at:%Y-%m-%d %H:%M} UTC): all segments took more than RETAIN_UNTIL_EXPORTED_MAX_BYTES."
            )


@dataclass(frozen=True, slots=True)
class Beside:
    """The contribution of a door to the page System: a sentence for each problem, and the door's part of the page.

    `template` is the template of this part, which shows `found`; without a template the page has no such part.
    """

    problems: Sequence[str] = ()
    template: str = ""
    found: object = None


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk that holds the embedded PostgreSQL's data, in bytes."""

    free: int
    total: int


def _of_disk(disk: Disk | None) -> Iterator[str]:
    if disk is not None and disk.free < disk.total * settings.ATTENTION_FREE_PERCENT / 100:
        free = f"{disk.free / 1024**3:.1f} GiB of {disk.total / 1024**3:.0f} are free"
        yield f"The disk of PostgreSQL's data fills: {free}; retention drops segments by MQBROKER_RESERVED_HOURS only."


def read_disk() -> Disk | None:
    """The disk of the embedded servers' data folder; None if this broker has no data folder."""
    if not settings.DATA_DIR:
        return None
    usage = shutil.disk_usage(settings.DATA_DIR)
    return Disk(usage.free, usage.total)


@dataclass(frozen=True, slots=True)
class Database:
    """One reading of a cell's database."""

    snapshots: Sequence[Snapshot]
    connections: Sequence[Connections]
    hot_tables: Sequence[HotTable]
    segments: Sequence[SegmentSize]
    exports: Exports

    @property
    def connected(self) -> int:
        """The number of connections of the server."""
        return sum(row.connections for row in self.connections)

    def problems(self, now: datetime) -> Iterator[str]:
        """The problems, one sentence each."""
        yield from self.exports.problems(now)
        for snapshot in self.snapshots[:1]:
            if snapshot.seconds is None or snapshot.seconds > PINNED_SECONDS:
                since = "" if snapshot.seconds is None else f" for {snapshot.seconds:.0f} s"
                who = f"A {snapshot.kind} ({snapshot.name})"
                yield f"{who} pins a snapshot{since}: dead rows stay, and scans get slower."
        for table in self.hot_tables:
            if table.dead > MANY_DEAD and table.dead > table.live:
                yield f"The table {table.name} has {table.dead:,} dead rows: VACUUM does not keep up."
        if self.connections and self.connected > CONNECTIONS_SHARE * self.connections[0].max_connections:
            most = self.connections[0].max_connections
            yield f"{self.connected} of {most} connections of the server are used: the next process may find none."


def read_database() -> Database:
    """Reads the database of the current cell, or else of the control."""
    return Database(
        snapshots=database_health.snapshots(),
        connections=database_health.connections(),
        hot_tables=database_health.hot_tables(),
        segments=database_health.segments(),
        exports=Exports(latest=exports.latest(), wait=exports.wait(), bytes=exports.taken_bytes()),
    )


@dataclass(frozen=True, slots=True)
class System:
    """One reading of the broker's surroundings. `problems` is empty when all is in order.

    `databases` are the cells' databases by cell name, the control's first; `missing` are the cells that did not answer.
    `disk` is None when the database is on another machine; `beside` has the contributions of doors.
    """

    now: datetime
    databases: Mapping[str, Database]
    redis: str | None
    processes: Sequence[Alive]
    beside: Sequence[Beside] = ()
    disk: Disk | None = None
    missing: Sequence[str] = ()

    @property
    def problems(self) -> list[str]:
        """The problems, one sentence each."""
        away = [f"The cell {cell} does not answer: its topics are answered by 503 cell_away." for cell in self.missing]
        return [*away, *(f"{cell}{problem}" for cell, problem in self.of_servers), *self._of_processes()]

    @property
    def of_servers(self) -> list[tuple[str, str]]:
        """The problems of databases, disk, Redis and doors: pairs of a cell (may be empty) and a sentence."""
        around = [*_of_disk(self.disk), *([self.redis] if self.redis else [])]
        around += (problem for one in self.beside for problem in one.problems)
        return [*self._of_databases(), *(("", problem) for problem in around)]

    def is_away(self, process: Alive) -> bool:
        """Whether a process has written no heartbeat for AWAY_SECONDS."""
        return self.now - process.beaten_at > timedelta(seconds=heartbeats.AWAY_SECONDS)

    def _of_databases(self) -> Iterator[tuple[str, str]]:
        named = len(self.databases) + len(self.missing) > 1
        for cell, database in self.databases.items():
            for problem in database.problems(self.now):
                yield f"Cell {cell}: " if named else "", problem

    def _of_processes(self) -> Iterator[str]:
        here = {process.kind for process in self.processes if not self.is_away(process)}
        if "worker" not in here:
            yield "No worker was reached by a tick of beat: web processes do its work, seconds later."
        if "web" not in here:
            yield "No web process polls: without a worker nothing is released or checked."


def read() -> System:
    """The surroundings as they are now."""
    with cells.leaving_out() as missing:
        found = cells.ask(read_database)
    return System(
        now=store_stats.now(),
        databases={runtime.of(cell).name: database for cell, database in found.items()},
        missing=missing,
        redis=health.redis_warning(),
        processes=heartbeats.alive(),
        beside=[read_door() for read_door in doors.added(doors.To.SURROUNDINGS)],
        disk=read_disk(),
    )


class ClosedTopic(NamedTuple):
    """A topic that takes no messages yet, with the fields of an `Attention` after `urgent`."""

    what: str
    detail: str
    about: Literal["topic"]
    mend: str
    name: str


def closed_topics(count: int, namespace: str | None = None) -> Iterator[ClosedTopic]:
    """The first `count` topics that take no messages before their time, the first to open first."""
    for topic in store_stats.closed_topics(count, namespace):
        what = f"{topic.name} takes no messages until {topic.sends_from:%Y-%m-%d %H:%M:%S} UTC"
        mend = f"PUT /v1/topics/{topic.name} with another sends_from"
        yield ClosedTopic(what, "its sends and half messages are refused", "topic", mend, topic.name)
