"""Ten cells that idle take little of a process: connections, memory and CPU.

`MQ_BURDENS=1 ./mq test tests/over_cells/test_idle.py -s`, on a quiet machine, prints the figures and holds those that
are promised.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.broker.burdens import IS_STRICT, MEBIBYTE
from tests.broker.cells import joined
from tests.broker.polling import eventually
from tests.broker.processor_time import used_by_tree
from tests.broker.running import RunningBroker

CELLS = 10
MOST_CONNECTIONS = 8
MOST_BYTES = 10 * MEBIBYTE
# Of a core, for all cells together.
MOST_CPU = 0.003 if IS_STRICT else 0.1
WATCHED_SECONDS = 40.0 if IS_STRICT else 4.0
# Pools and listeners connect in the seconds behind the start.
SETTLE_SECONDS = 15.0 if IS_STRICT else 4.0


@dataclass(frozen=True)
class Idle:
    """What a web process takes that does nothing: CPU by the part of a core, memory, and the sessions of each cell."""

    cpu: float
    memory: int
    sessions: list[int]


@pytest.mark.long
def test_ten_idle_cells_take_little_of_a_process(prepared: str, tmp_path: Path) -> None:
    one, many = (idle(prepared, tmp_path / str(cells), cells) for cells in (1, 1 + CELLS))
    cpu, memory = many.cpu - one.cpu, (many.memory - one.memory) / CELLS
    print(
        f"of one cell {one.cpu:.2%} of a core; {CELLS} more take {cpu:.2%} in all, {memory / MEBIBYTE:.1f} MiB each; "
        f"sessions {many.sessions}"
    )

    assert max(many.sessions[1:]) <= MOST_CONNECTIONS
    assert memory <= MOST_BYTES
    assert cpu <= MOST_CPU


def idle(prepared: str, folder: Path, cells: int) -> Idle:
    """What a broker of so many cells takes in a web process without workers."""
    with joined(prepared, cells) as found:
        broker = RunningBroker(folder, found.urls[0], os.environ["REDIS_URL"], tasks=False)
        with broker:
            process = psutil.Process(broker.webs[0].pid)
            eventually(lambda: all(sessions(url) for url in found.urls))
            time.sleep(SETTLE_SECONDS)
            before, began = used_by_tree(process), time.monotonic()
            time.sleep(WATCHED_SECONDS)
            used, took = used_by_tree(process) - before, time.monotonic() - began
            return Idle(used / took, process.memory_full_info().uss, [sessions(url) for url in found.urls])


def sessions(url: str) -> int:
    """How many sessions of the broker a database has."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url) as session:
        [[count]] = session.execute(others).fetchall()
    return int(count)
