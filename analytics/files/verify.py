"""Verifies an export: by its files and their list alone, and against the broker that it came from."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet as parquet

from analytics.connections import Connection, read
from analytics.files import increments, manifest
from analytics.files.manifest import Hole, Manifest, Part
from analytics.rows import EndedCount
from store.db.statements import Statement

COUNT_STATES = Statement(__file__, "count_states", EndedCount)
# Of one table: a file with a million wrong rows is one damage.
MOST_OF_A_TABLE = 20


def of_files(folder: Path, made: Manifest) -> list[str]:
    """What is wrong with the files, one sentence each; nothing for an export that is whole."""
    found = [problem for part in made.parts for problem in _of_part(folder, part)]
    listed = {part.path for part in made.parts}
    there = [str(file.relative_to(folder)) for table in manifest.TABLES for file in manifest.files(folder, table)]
    found += [f"{path} is no file of this export." for path in there if path not in listed]
    for check in (_of_messages, _of_entries, _of_transactions):
        found += islice(check(folder, made), MOST_OF_A_TABLE)
    return found


def against(broker: Connection, folder: Path, made: Manifest) -> list[str]:
    """Where the files and the broker count other outcomes, in the segments that the broker still keeps."""
    rows = read(broker, COUNT_STATES, {"operation_id": made.ends.operation_id})
    there = {(row.segment, row.state): row.transactions for row in rows}
    held = _states(folder, made)
    kept = {row.segment for row in rows}
    return [
        f"transactions: segment {segment} has {held[segment, state]} {state} in the files and "
        f"{there.get((segment, state), 0)} in the broker."
        for segment, state in sorted(held.keys() | there.keys())
        if segment in kept and held[segment, state] != there.get((segment, state), 0)
    ]


def holes(made: Manifest) -> Iterator[str]:
    """What retention dropped before it was exported, one sentence each."""
    for hole in made.holes:
        of = "" if hole.topic_id is None else f" of topic {hole.topic_id}, queue {hole.queue_id}"
        yield f"Hole: retention dropped the {hole.table}{of} from offset {hole.first} to {hole.last} before an export."


def _of_part(folder: Path, part: Part) -> Iterator[str]:
    file = folder / part.path
    if not file.is_file():
        yield f"{part.path} is missing, with {part.rows} rows."
        return
    if manifest.checksum(file) != part.checksum:
        yield f"{part.path} was changed: its checksum is not that of the manifest."
    try:
        rows = parquet.read_metadata(file).num_rows
    except (OSError, pyarrow.ArrowException):
        yield f"{part.path} cannot be read."
        return
    if rows != part.rows:
        yield f"{part.path} holds {rows} rows, and {part.rows} were exported."


def _of_messages(folder: Path, made: Manifest) -> Iterator[str]:
    parts = [part for part in made.parts if part.table == "messages" and part.rows]
    if not parts:
        return
    offsets = numpy.sort(_columns(folder, parts, "log_offset")["log_offset"].to_numpy())
    for offset, times in zip(*_doubled(offsets), strict=True):
        yield f"messages: the log offset {offset} is there {times} times."
    first = min(part.first for part in parts if part.first is not None)
    allowed = [*made.unused, *((hole.first, hole.last) for hole in made.holes if hole.table == "messages")]
    unique = numpy.unique(numpy.concatenate([offsets, *(numpy.arange(low, high + 1) for low, high in allowed)]))
    for low, high in increments.runs_without(unique, first, made.ends.log_offset):
        yield f"messages: the log offsets {low} to {high} are missing."


def _of_entries(folder: Path, made: Manifest) -> Iterator[str]:
    parts = [part for part in made.parts if part.table == "entries" and part.rows]
    columns = ("topic_id", "queue_id", "queue_offset")
    found = _columns(folder, parts, *columns).to_pandas().sort_values(list(columns))
    ends = {(topic_id, queue_id): last for topic_id, queue_id, last in made.ends.queues}
    for (topic_id, queue_id), rows in found.groupby(["topic_id", "queue_id"], sort=True):
        key = (int(topic_id), int(queue_id))
        yield from _of_queue(key, rows["queue_offset"].to_numpy(), ends.pop(key, -1), made.holes)
    for topic_id, queue_id in ends:
        yield f"entries: topic {topic_id}, queue {queue_id} is missing."


def _of_queue(key: tuple[int, int], offsets: Any, last: int, holes: Sequence[Hole]) -> Iterator[str]:
    queue = f"entries: in topic {key[0]}, queue {key[1]}"
    for offset, times in zip(*_doubled(offsets), strict=True):
        yield f"{queue} the offset {offset} is there {times} times."
    allowed = {(hole.first, hole.last) for hole in holes if (hole.topic_id, hole.queue_id) == key}
    for low, high in increments.runs_without(numpy.unique(offsets), int(offsets[0]), last):
        if (low, high) not in allowed:
            yield f"{queue} the offsets {low} to {high} are missing."


def _of_transactions(folder: Path, made: Manifest) -> Iterator[str]:
    parts = [part for part in made.parts if part.table in ("transactions", "transactions_open") and part.rows]
    ids = _columns(folder, parts, "transaction_id")["transaction_id"].to_pylist()
    for transaction_id, times in Counter(ids).items():
        if times > 1:
            yield f"transactions: {transaction_id} is there {times} times."


def _states(folder: Path, made: Manifest) -> Counter[tuple[int, str]]:
    counted: Counter[tuple[int, str]] = Counter()
    for part in made.parts:
        if part.table == "transactions" and part.segment is not None:
            states = _columns(folder, [part], "state")["state"].to_pylist()
            counted.update((part.segment, state) for state in states)
    return counted


def _columns(folder: Path, parts: Sequence[Part], *names: str) -> pyarrow.Table:
    """Columns of the files that can be read; the others are named by their checksums."""
    found = [pyarrow.table({name: pyarrow.array([], "int64") for name in names})]
    for part in parts:
        try:
            found.append(parquet.read_table(folder / part.path, columns=list(names), partitioning=None))
        except (OSError, pyarrow.ArrowException):
            continue
    return pyarrow.concat_tables(found[1:] or found, promote_options="permissive")


def _doubled(ordered: Any) -> tuple[Any, Any]:
    values, times = numpy.unique(ordered, return_counts=True)
    return values[times > 1], times[times > 1]
