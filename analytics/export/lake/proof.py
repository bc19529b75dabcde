"""Verifies the table of a lake: no commit is missing, and each message of the log has one row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow

from analytics.export.lake.feeds import MAX_OFFSETS, Feed
from analytics.export.lake.table import BATCH, CELL, READ, TOPIC_ID, Batch, Committed, LakeTable, Reach
from analytics.readers.datasource.orders import Position

Key = tuple[str, int, int, int]
Say = Callable[[str], None]
# The most reported faults of one kind: a file with a million wrong rows is only one fault.
MOST_OF_A_KIND = 20
KEY = (TOPIC_ID, "queue_id", "queue_offset")
# Columns that the log loses when a topic or a group is deleted, or when retention drops the entry of a delay level.
LOST = frozenset(("topic", "namespace", "producer_group", "due_at"))
NAMES = READ.columns.names
# Operations of other programs that leave all rows as they are.
HARMLESS = frozenset(
    ("OPTIMIZE", "VACUUM START", "VACUUM END", "CREATE TABLE", "SET TBLPROPERTIES", "FSCK", "ADD COLUMN")
)


def of(of_table: LakeTable, feeds: Mapping[str, Feed], say: Say) -> Iterator[str]:
    """The faults of the table, one sentence each. `say` gets sentences about holes and about rows that cannot be
    compared.
    """
    commits = of_table.commits()
    yield from _of_commits(commits, of_table.counted)
    missing = list(_of_files(of_table))
    yield from missing
    if missing:
        say("The rows are not compared with the log while files are missing.")
        return
    batches = [commit.batch for commit in commits if commit.batch]
    yield from _of_numbers(of_table.batches(), batches, say)
    for batch in batches:
        for cell, reach in batch.cells.items():
            for queue, (first, last) in reach.holes.items():
                say(f"Hole: retention dropped the offsets {first} to {last} of {cell}, queue {queue}, before a batch.")
    for together in _groups(batches):
        yield from of_batches(together, of_table, feeds, say)


def of_batches(batches: Sequence[Batch], of_table: LakeTable, feeds: Mapping[str, Feed], say: Say) -> Iterator[str]:
    """The differences between the rows of consecutive batches and the rows that the log has for the same offsets."""
    first, last = batches[0].number, batches[-1].number
    spans = {cell: _Span(batches, cell, feed) for cell, feed in feeds.items()}
    held: dict[Key, tuple[int, ...]] = {}
    doubled, unknown = [], 0
    for found in of_table.rows(first, last):
        for row in found.to_pylist():
            span = spans.get(row[CELL])
            if span is None or span.is_dropped(row):
                unknown += 1
            elif (key := _key(row[CELL], row)) in held:
                doubled.append(f"{_named(row[CELL], row)} is there more than once.")
            else:
                held[key] = (row[BATCH], *_hashes(row))
    if unknown:
        say(f"Batches {first} to {last}: {unknown:,} messages are no longer in the log, and not compared.")
    yield from _few(doubled)
    for cell, span in spans.items():
        yield from _few(_of_rows(cell, feeds[cell].rows(span.start, span.end), held, of_table))
    yield from _few(f"{_of_key(key)} is in the table (batch {of[0]}), and not in the log." for key, of in held.items())


def _of_rows(
    cell: str, rows: Iterator[pyarrow.RecordBatch], held: dict[Key, tuple[int, ...]], of_table: LakeTable
) -> Iterator[str]:
    missing = 0
    for batch in rows:
        for row in batch.to_pylist():
            found = held.pop(_key(cell, row), None)
            if found is None:
                # A dead letter that was redriven looks like a new message once retention has dropped its first entry.
                # Each look-up reads the table, so only the first faults are looked up.
                if missing > MOST_OF_A_KIND or not of_table.has(cell, row["message_id"]):
                    missing += 1
                    yield f"{_named(cell, row)} is in the log, and not in the table."
                continue
            wrong = [
                name
                for name, there, here in zip(NAMES, found[1:], _hashes(row), strict=True)
                if there != here and not (name in LOST and row[name] is None)
            ]
            if wrong:
                what = ", ".join(wrong)
                yield f"{_named(cell, row)} has another {what} in the table (batch {found[0]}) than in the log."


def _of_commits(commits: Sequence[Committed], counted: int) -> Iterator[str]:
    ends: dict[str, Position] = {}
    last = None
    for commit in commits:
        if not commit.is_of_lake and commit.operation not in HARMLESS:
            yield f"Version {commit.version} was made by another program ({commit.operation})."
        if commit.batch is None:
            continue
        batch = commit.batch
        if last is not None and batch.number != last + 1:
            yield f"Version {commit.version} is batch {batch.number}, and follows batch {last}."
        for cell, reach in batch.cells.items():
            if cell in ends:
                yield from _of_start(batch, cell, reach, ends[cell])
            ends[cell] = reach.end
        last = batch.number
    if last is not None and counted != last:
        yield f"The last commit is batch {last}, and the table has counted {counted} batches."


def _of_start(batch: Batch, cell: str, reach: Reach, end: Position) -> Iterator[str]:
    for queue in {*reach.start, *(queue for queue in reach.end if reach.end[queue] != end.get(queue, 0))}:
        at, start = end.get(queue, 0), reach.start.get(queue)
        if start != at and (at, (start or 0) - 1) != tuple(reach.holes.get(queue, ())):
            yield f"Batch {batch.number} of {cell} begins queue {queue} at {start}, and the one before ended at {at}."


def _of_files(of_table: LakeTable) -> Iterator[str]:
    for path, size in of_table.files().items():
        name = path.relative_to(of_table.folder)
        if not path.is_file():
            yield f"{name} is missing."
        elif path.stat().st_size != size:
            yield f"{name} has {path.stat().st_size} bytes, and {size} were written."


def _of_numbers(counts: Mapping[int | None, int], batches: Sequence[Batch], say: Say) -> Iterator[str]:
    known = {batch.number for batch in batches}
    lowest = min(known, default=0)
    early = sum(rows for number, rows in counts.items() if number is not None and 0 < number < lowest)
    if early:
        say(f"Batches before {lowest}: Delta Lake has dropped their commits, so {early:,} messages are not compared.")
    for number, rows in counts.items():
        if number not in known and not (number is not None and 0 < number < lowest):
            yield f"{rows:,} messages are of batch {number}, which no commit has added."


def _groups(batches: Sequence[Batch]) -> Iterator[Sequence[Batch]]:
    """Batches that are read together, with about MAX_OFFSETS offsets: a small batch costs as much as a large one."""
    read = 0

    def number(batch: Batch) -> int:
        nonlocal read
        read += sum(reach.offsets for reach in batch.cells.values())
        return read // MAX_OFFSETS

    for _, together in groupby(batches, number):
        yield list(together)


class _Span:
    """The offsets of a cell that batches have read; `start` is after the rows that retention has dropped meanwhile."""

    def __init__(self, batches: Sequence[Batch], cell: str, feed: Feed) -> None:
        self._begun: Position = {}
        self.end: Position = {}
        for batch in batches:
            if reach := batch.cells.get(cell):
                self._begun = {**reach.start, **self._begun}
                self.end = reach.end
        kept = feed.kept()
        self._kept = {queue: max(first, kept.get(queue, self.end[queue])) for queue, first in self._begun.items()}
        self.start = {queue: first for queue, first in self._kept.items() if first < self.end[queue]}

    def is_dropped(self, row: Mapping[str, Any]) -> bool:
        """Whether the batches have read this row, and retention has dropped it from the log afterwards."""
        queue = f"{row[TOPIC_ID]}/{row['queue_id']}"
        return queue in self._begun and bool(self._begun[queue] <= row["queue_offset"] < self._kept[queue])


def _hashes(row: Mapping[str, Any]) -> tuple[int, ...]:
    """A hash of each value of a row, which takes little memory. Python seeds its hashes, so no file can forge them."""
    return tuple(hash(tuple(value) if isinstance(value := row[name], list) else value) for name in NAMES)


def _key(cell: str, row: Mapping[str, Any]) -> Key:
    return (cell, *(row[name] for name in KEY))


def _named(cell: str, row: Mapping[str, Any]) -> str:
    return f"{_of_key(_key(cell, row))} (message {row['message_id']})"


def _of_key(key: Key) -> str:
    cell, topic_id, queue_id, offset = key
    return f"{cell}: topic {topic_id}, queue {queue_id}, offset {offset}"


def _few(faults: Iterable[str]) -> Iterator[str]:
    """The first MOST_OF_A_KIND faults of a kind. Reads all, because the search also marks rows as compared."""
    for number, fault in enumerate(faults):
        if number < MOST_OF_A_KIND:
            yield fault
        if number == MOST_OF_A_KIND:
            yield "There are more of this kind."
