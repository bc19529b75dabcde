"""Records the history: each web process looks often, and the first one that finds a new minute records it.

Each process counts its answers to sends and adds them at its looks; a process that dies loses the counts since its last
look. While a cell is away no minute is recorded, because the numbers of the other cells would look like a fall.
"""

import asyncio
import json
import time
from collections.abc import Sequence

from django.conf import settings
from django.db import connection

from console.monitoring import requests
from console.monitoring.history import figures
from console.monitoring.history.figures import Counters
from console.monitoring.rows import Latest
from store.cells import cells
from store.db import patience, sync
from store.db.statements import Statement
from store.process import runtime
from store.process.runtime import CONTROL

READ_COUNTERS = Statement(__file__, "read_counters", Latest)
RECORD_FIGURES = Statement(__file__, "record_figures")
ADD_SEND_TIMES = Statement(__file__, "add_send_times")

LOOK_SECONDS = 10.0
SENDS = ("send", "begin", "send_batch")
# The shortest time between two recorded readings; a rate over a shorter time is too inexact.
MIN_SECONDS = 1.0


class Recorder:
    """Decides when this process looks for a new minute to record, and counts its answers to sends."""

    def __init__(self) -> None:
        # The first look comes after LOOK_SECONDS, because a process that has just started is busy.
        self._due_at = time.monotonic() + LOOK_SECONDS
        self._sends = requests.answered_here(SENDS)

    async def keep(self) -> None:
        """Looks for a new minute, unless the last look was within LOOK_SECONDS.

        Runs in a thread, because it uses Django's connection.
        """
        if time.monotonic() < self._due_at or not settings.HISTORY_DAYS:
            return
        self._due_at = time.monotonic() + LOOK_SECONDS
        await asyncio.to_thread(self._look)

    def _look(self) -> None:
        try:
            with runtime.in_cell(CONTROL), patience.of(patience.WORK_SECONDS):
                [latest] = sync.read(READ_COUNTERS)
                if latest.is_due:
                    record(latest)
                self._add_sends()
        finally:
            # A thread of this pool must not keep a connection, because no other thread could use it.
            connection.close()

    def _add_sends(self) -> None:
        before, self._sends = self._sends, requests.answered_here(SENDS)
        found = [(str(at), now - then) for at, (now, then) in enumerate(zip(self._sends, before, strict=True))]
        if rows := [(name, count) for name, count in found if count > 0]:
            names, counts = zip(*rows, strict=True)
            sync.write(ADD_SEND_TIMES, {"name": list(names), "value": list(counts)})


def record(latest: Latest) -> None:
    """Records the minute that has begun, from all cells or not at all."""
    with cells.leaving_out() as missing:
        reading = figures.read()
    if missing:
        return
    found = reading.figures
    if latest.seconds is not None and latest.counters is not None and latest.seconds >= MIN_SECONDS:
        found = [*found, *figures.rates(reading.counters, json.loads(latest.counters), latest.seconds)]
    sync.write(RECORD_FIGURES, {**_columns(found), **_state(latest, reading.counters)})


def _columns(found: Sequence[figures.Figure]) -> dict[str, object]:
    return {
        "figure": [one.figure for one in found],
        "name": [one.name for one in found],
        "value": [float(one.value) for one in found],
    }


def _state(latest: Latest, counters: Counters) -> dict[str, object]:
    return {
        "read_at": latest.read_at,
        "recorded_at": latest.recorded_at,
        "counters": json.dumps(counters),
        "days": settings.HISTORY_DAYS,
    }
