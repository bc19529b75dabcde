"""Jobs for `./mq bench horizon`: a module for each queue, with `prepare`, `produce` and `consume`.

The processes read DATABASE_URL, JOBS_FOLDER and JOBS_PORT, and write a line of seconds for each job into a file.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from tools.bench import load

PER_SECOND = 800
PRODUCERS, CONSUMERS = 8, 4
DATABASE_URL = os.environ.get("DATABASE_URL", "")


class Times:
    """A file with one line for each job: how many seconds after its due time the job ran."""

    def __init__(self, role: str) -> None:
        path = Path(os.environ.get("JOBS_FOLDER", ".")) / f"{role}-{os.getpid()}.times"
        # Each line is written at once: the benchmark reads the file meanwhile.
        self._file = path.open("a", buffering=1)

    def note(self, due: float) -> None:
        """Writes the line of one job. `due` is a Unix time."""
        self._file.write(f"{time.time() - due:.6f}\n")


def due_times(producer: int) -> Iterator[float]:
    """Unix times at which one of the producers begins its jobs, without end."""
    began = time.time()
    number = 0
    while True:
        yield began + (number * PRODUCERS + producer) / PER_SECOND
        number += 1


async def paced(producer: int) -> AsyncIterator[float]:
    """Yields each due time of a producer when the time has come; at once if the producer is late."""
    for due in due_times(producer):
        await asyncio.sleep(max(0.0, due - time.time()))
        yield due


def run_all(work: Callable[[int, Times], Coroutine[Any, Any, None]], role: str, count: int) -> None:
    """Runs a number of producers or consumers in one event loop until the process is stopped."""

    async def all_of_them() -> None:
        times = Times(role)
        await asyncio.gather(*(work(number, times) for number in range(count)))

    load.run(all_of_them())
