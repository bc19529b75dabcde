"""Verifies an export: its files against its manifest, and its rows against the broker."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet as parquet

from analytics.connections import Connection, read
from analytics.files import compared, increments, manifest, parts
from analytics.files.hadoop import Place
from analytics.files.manifest import Hole, Manifest, Part
from analytics.rows import OutcomeCount
from store.db.statements import Statement

COUNT_STATES = Statement(__file__, "count_states", OutcomeCount)
# The most reported faults of a table: a file with a million wrong rows is one damage.
MOST_OF_A_TABLE = 20


def of_files(place: Place, made: Manifest) -> list[str]:
    """The faults of the files, one sentence each; empty for an undamaged export."""
    found = [problem for part in made.parts for problem in _of_part(place, part)]
    listed = {part.path for part in made.parts}
    there = [path for path in place.files() if not manifest.hidden(path)]
    found += [f"{path} is no file of this export." for path in there if path not in listed | {manifest.NAME}]
    counted = manifest.rows(made.parts)
    found += [
        f"{manifest.NAME} has {rows} rows of {table} in all, and {counted[table]} in its files."
        for table, rows in made.rows.items()
        if rows != counted[table]
    ]
    for check in (_of_messages, _of_entries, _of_transactions):
        found += islice(check(place, made), MOST_OF_A_TABLE)
    return found


def against(broker: Connection, place: Place, made: Manifest) -> list[str]:
    """The differences from the messages, undecided transactions and outcomes that the broker still has."""
    replaced = _replaced(broker, place, made)
    # After the restore of a back-up, all later messages differ.
    others = [] if replaced else islice(compared.messages(broker, place, made), MOST_OF_A_TABLE)
    undecided = islice(compared.undecided(broker, place, made), MOST_OF_A_TABLE)
    return [*replaced, *others, *undecided, *_outcomes(broker, place, made)]


def _replaced(broker: Connection, place: Place, made: Manifest) -> list[str]:
    try:
        return list(compared.replaced(broker, place, made))
    except (OSError, pyarrow.ArrowException):
        # An unreadable file is not reported here: the comparison of checksums reports it.
        return []


def _outcomes(broker: Connection, place: Place, made: Manifest) -> list[str]:
    rows = read(broker, COUNT_STATES, {"operation_id": made.ends.operation_id})
    there = {(row.segment, row.state): row.transactions for row in rows}
    held = _states(place, made)
    kept = {row.segment for row in rows}
    return [
        f"transactions: segment {segment} has {held[segment, state]} {state} in the files and "
        f"{there.get((segment, state), 0)} in the broker."
        for segment, state in sorted(held.keys() | there.keys())
        if segment in kept and held[segment, state] != there.get((segment, state), 0)
    ]


def holes(made: Manifest) -> Iterator[str]:
    """The rows that retention dropped before they were exported, one sentence each."""
    for hole in made.holes:
        of = "" if hole.topic_id is None else f" of topic {hole.topic_id}, queue {hole.queue_id}"
        first = f"{'operation' if hole.table == 'transactions' else 'offset'} {hole.first}"
        yield f"Hole: retention dropped the {hole.table}{of} from {first} to {hole.last} before an export."


def _of_part(place: Place, part: Part) -> Iterator[str]:
    try:
        checksum = place.checksum(part.path)
    except FileNotFoundError:
        yield f"{part.path} is missing, with {part.rows} rows."
        return
    if checksum != part.checksum:
        yield f"{part.path} was changed: its checksum is not that of the manifest."
    try:
        with place.opened(part.path) as opened:
            found = parquet.read_metadata(opened)
    except (OSError, pyarrow.ArrowException):
        yield f"{part.path} cannot be read."
        return
    if found.num_rows != part.rows:
        yield f"{part.path} holds {found.num_rows} rows, and {part.rows} were exported."
    elif (bounds := manifest.bounds(found)) != (part.first, part.last):
        yield f"{part.path} holds the log offsets {bounds}, and {(part.first, part.last)} were exported."
    if (columns := manifest.columns(found)) != part.schema:
        yield f"{part.path} has {columns} columns, and {part.schema} were exported."


def _of_messages(place: Place, made: Manifest) -> Iterator[str]:
    listed = [part for part in made.parts if part.table == "messages" and part.rows]
    if not listed:
        return
    offsets = numpy.sort(_columns(place, listed, "log_offset")["log_offset"].to_numpy())
    for offset, times in zip(*_doubled(offsets), strict=True):
        yield f"messages: the log offset {offset} is there {times} times."
    first = min(part.first for part in listed if part.first is not None)
    allowed = [*made.unused, *((hole.first, hole.last) for hole in made.holes if hole.table == "messages")]
    unique = numpy.unique(numpy.concatenate([offsets, *(numpy.arange(low, high + 1) for low, high in allowed)]))
    for low, high in increments.runs_without(unique, first, made.ends.log_offset):
        yield f"messages: the log offsets {low} to {high} are missing."


def _of_entries(place: Place, made: Manifest) -> Iterator[str]:
    listed = [part for part in made.parts if part.table == "entries" and part.rows]
    columns = ("topic_id", "queue_id", "queue_offset")
    found = _columns(place, listed, *columns).to_pandas().sort_values(list(columns))
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


def _of_transactions(place: Place, made: Manifest) -> Iterator[str]:
    listed = [part for part in made.parts if part.table in ("transactions", "transactions_open") and part.rows]
    ids = _columns(place, listed, "transaction_id")["transaction_id"].to_pylist()
    for transaction_id, times in Counter(ids).items():
        if times > 1:
            yield f"transactions: {transaction_id} is there {times} times."


def _states(place: Place, made: Manifest) -> Counter[tuple[int, str]]:
    counted: Counter[tuple[int, str]] = Counter()
    for part in made.parts:
        if part.table == "transactions" and part.segment is not None:
            states = _columns(place, [part], "state")["state"].to_pylist()
            counted.update((part.segment, state) for state in states)
    return counted


def _columns(place: Place, of: Sequence[Part], *names: str) -> pyarrow.Table:
    """The named columns of all readable files. The comparison of checksums reports each unreadable file."""
    found = [pyarrow.table({name: pyarrow.array([], "int64") for name in names})]
    for part in of:
        try:
            found.append(parts.columns(place, part, *names))
        except (OSError, pyarrow.ArrowException):
            continue
    return pyarrow.concat_tables(found[1:] or found, promote_options="permissive")


def _doubled(ordered: Any) -> tuple[Any, Any]:
    values, times = numpy.unique(ordered, return_counts=True)
    return values[times > 1], times[times > 1]
