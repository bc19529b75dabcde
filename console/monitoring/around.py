"""Findings about the broker's surroundings: cells, moves of topics, servers, the disk, exports, and workers."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from console.cells import standing
from console.monitoring.scrape import ReadOnce, Sample, Shared
from console.monitoring.system import System

MEND_CELL = "start its PostgreSQL, or fail over and set its URL by `cells add NAME URL`"


class Around(NamedTuple):
    """One finding, with the fields of `console.monitoring.attention.Attention`."""

    urgent: bool
    what: str
    detail: str
    about: Literal["cells", "system"]
    mend: str
    since: datetime | None = None


def found(system: System) -> Iterator[Around]:
    """All findings about the surroundings, from one reading."""
    yield from moves()
    for cell in system.missing:
        what, why = f"The cell {cell} does not answer", "its topics are answered by 503 cell_away"
        yield Around(True, what, why, "cells", MEND_CELL)
    for cell, problem in system.of_servers:
        what, _, why = problem.rstrip(".").partition(": ")
        yield Around(
            True, f"{cell}{what}", why, "system", "see the console's page System and docs/operations.md, Monitoring"
        )
    workers = [process for process in system.processes if process.kind == "worker"]
    # An installation that never had a worker is in order: web processes do its work.
    if workers and all(system.is_away(worker) for worker in workers):
        why = f"{workers[0].process} was the last; web processes do the work late"
        what, since = "No tick of beat reaches a worker", workers[0].beaten_at
        yield Around(True, what, why, "system", "start beat and a worker", since)


def moves() -> Iterator[Around]:
    """The finding about an unfinished move of topics: the source stores nothing while the move fences it."""
    if (move := standing.read()) is not None:
        what = f"The move {move.named} is at the step {move.step}"
        effect = f"; {move.source_name} takes no writes meanwhile" if move.fences else ""
        yield Around(move.is_urgent, what, f"{move.reason}{effect}", "cells", move.mend, move.started_at)


def _seconds(_: ReadOnce) -> list[Sample]:
    move = standing.read()
    return [] if move is None else [((move.named, move.step), move.seconds)]


METRICS = (
    Shared(
        "mqbroker_move_seconds",
        "Time since the start of a move of topics between cells that has not ended; no sample without a move.",
        _seconds,
        labels=("move", "step"),
    ),
)
