"""The system's counters for the measured processes: CPU, and PostgreSQL's WAL."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

SERVER_PROCESSES = "SELECT pid FROM pg_stat_activity"
TABLES = "SELECT sum(n_dead_tup), sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables"
WAL_POSITION = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
DURABILITY = ("fsync", "synchronous_commit", "full_page_writes")


def cpu_seconds(pid: int) -> float:
    """The CPU seconds of one single-threaded process so far, exact to the nanosecond; 0 after its end."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def cpu_of_group(group: int) -> float:
    """The CPU seconds of all processes of a process group so far, from the system's clock ticks."""
    ticks = sum(int(fields[11]) + int(fields[12]) for _, fields in _of_group(group))
    return ticks / os.sysconf("SC_CLK_TCK")


def rss_bytes_of_group(group: int) -> int:
    """The resident memory of all processes of a process group; shared pages count in each process."""
    return sum(int(fields[21]) for _, fields in _of_group(group)) * os.sysconf("SC_PAGE_SIZE")


def processes_of_group(group: int) -> list[int]:
    """The ids of the processes of a process group."""
    return [pid for pid, _ in _of_group(group)]


def _of_group(group: int) -> Iterator[tuple[int, list[str]]]:
    """The processes of a group: their ids, and the system's figures behind their names."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[2]) == group:
                yield int(stat.parent.name), fields


def processes_of_server(connection: psycopg.Connection) -> list[int]:
    """The process ids of a PostgreSQL on this machine; the postmaster is first."""
    backend = int(str(_value(connection, "SELECT pg_backend_pid()")))
    first = int(Path(f"/proc/{backend}/stat").read_text().rsplit(")", 1)[1].split()[1])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    return [first, *map(int, children)]


@contextlib.contextmanager
def apart(processes: Iterable[int]) -> Iterator[bool]:
    """Within the block, binds the processes to one half of the cores, and this process, the load, to the other half.

    Yields False if that is not possible: with one core, or for processes of another user.
    """
    cores, given = sorted(os.sched_getaffinity(0)), list(processes)
    half = len(cores) // 2
    is_apart = half > 0 and _use(given, cores[half:]) and _use([os.getpid()], cores[:half])
    try:
        yield is_apart
    finally:
        _use([*given, os.getpid()], cores)


def _use(processes: Iterable[int], cores: Iterable[int]) -> bool:
    """Binds all threads of processes, and what they start, to these cores. Returns False if the system refuses."""
    try:
        for process in processes:
            for thread in Path(f"/proc/{process}/task").glob("*"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread.name), cores)
    except PermissionError:
        return False
    return True


def cpu_of_server(connection: psycopg.Connection) -> float:
    """The CPU seconds of all processes of the connection's server so far, including ended sessions."""
    first, *children = processes_of_server(connection)
    ticks = sum(_ticks(first)) + sum(sum(_ticks(child)[:2]) for child in children)
    return ticks / os.sysconf("SC_CLK_TCK")


def _ticks(process: int) -> list[int]:
    """The clock ticks of a process and of children that it has waited for: user, system, user, system.

    None once it has ended.
    """
    with contextlib.suppress(OSError):
        return [int(ticks) for ticks in Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:15]]
    return []


def require_durability(connection: psycopg.Connection) -> dict[str, str]:
    """The server's settings for durability. Raises RuntimeError unless a commit is on disk when it is acknowledged."""
    found = {name: str(_value(connection, f"SHOW {name}")) for name in DURABILITY}
    if weak := [f"{name} is {value}" for name, value in found.items() if value != "on"]:
        raise RuntimeError(
            f"{', '.join(weak)}: figures without durable commits compare with no others. Set them to on."
        )
    return found


@dataclass
class Used:
    """PostgreSQL's resource use within a block: CPU of all its processes, and bytes of WAL."""

    cpu_seconds: float = 0.0
    wal_bytes: int = 0


@contextlib.contextmanager
def used(url: str) -> Iterator[Used]:
    """Measures what a server, which has no other load, uses within the block. `url` names one of its databases."""
    use = Used()
    with psycopg.connect(url, autocommit=True) as connection:
        before, position = _cpu(connection), int(str(_value(connection, WAL_POSITION)))
        yield use
        use.cpu_seconds = sum(cpu - before.get(pid, 0.0) for pid, cpu in _cpu(connection).items())
        use.wal_bytes = int(str(_value(connection, WAL_POSITION))) - position


def _cpu(connection: psycopg.Connection) -> dict[int, float]:
    return {pid: cpu_seconds(pid) for (pid,) in connection.execute(SERVER_PROCESSES)}


def _value(connection: psycopg.Connection, query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def tables(connection: psycopg.Connection) -> dict[str, float]:
    """The dead rows and the bytes of all tables of a database, with their indexes."""
    [row] = connection.execute(TABLES).fetchall()
    return {"dead_rows": float(row[0]), "table_bytes": float(row[1])}
