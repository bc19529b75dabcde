"""Reads slices of the broker's tables by ADBC as Arrow batches, in a Python worker of Spark.

The workers of a cluster have only this module of the broker, so it imports no other. For bodies compressed by zstd it
needs backports.zstd, or Python 3.14.
"""

import collections
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow
import pyarrow.compute

if TYPE_CHECKING:
    import adbc_driver_manager

# The driver collects this many bytes before it returns a batch; a single row may be larger.
BATCH_BYTES = 8 * 1024 * 1024
# Values of the column `body_form` for bodies that their producers compressed.
COMPRESSED = ("zlib", "zstd")

_properties = msgspec.json.Decoder(dict[str, str])


def numbered(
    conninfo: str,
    queries: Sequence[str],
    schema: pyarrow.Schema,
    first: Sequence[str],
    numbers: Iterable[pyarrow.RecordBatch],
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of the queries with these numbers, as Arrow batches; runs in a Spark worker."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from batches(conninfo, queries[number], schema, first)


def batches(
    conninfo: str,
    query: str,
    schema: pyarrow.Schema,
    first: Sequence[str] = (),
    begin: "Callable[[adbc_driver_manager.AdbcConnection], None] | None" = None,
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a query with the columns of the schema.

    The statements `first` run before it, in the same transaction.

    `begin` is called with the connection before the query. JSON becomes a map where the schema has a map. Raises ADBC's
    errors, which contain no password.
    """
    # ADBC's `dbapi` is not used: it imports pandas, which takes a second in each worker.
    from adbc_driver_manager import AdbcConnection
    from adbc_driver_postgresql import connect

    with connect(conninfo) as database, AdbcConnection(database) as connection:
        connection.set_autocommit(False)
        for statement in first:
            collections.deque(rows(connection, statement), maxlen=0)
        if begin:
            begin(connection)
        for batch in rows(connection, query):
            yield converted(batch, schema)


def rows(connection: "adbc_driver_manager.AdbcConnection", query: str) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a query as ADBC returns them. Raises ADBC's errors."""
    from adbc_driver_manager import AdbcStatement, AdbcStatusCode, OperationalError
    from adbc_driver_postgresql import StatementOptions

    with AdbcStatement(connection) as statement:
        statement.set_options(**{StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)})
        statement.set_sql_query(query)
        stream, _ = statement.execute_query()
        try:
            yield from pyarrow.RecordBatchReader.from_stream(stream)
        except (pyarrow.ArrowException, OSError) as problem:
            raise OperationalError(str(problem), status_code=AdbcStatusCode.IO) from problem


def converted(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """The batch, converted to the columns and types of the schema."""
    columns = [
        _column(_bodies(batch) if field.name == "body" else batch.column(field.name), field.type) for field in schema
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _bodies(batch: pyarrow.RecordBatch) -> Any:
    """The bodies of a batch, decompressed if their producer compressed them."""
    bodies, forms = batch.column("body"), batch.column("body_form")
    is_packed = pyarrow.compute.is_in(forms, pyarrow.array(COMPRESSED, forms.type))
    if not pyarrow.compute.any(is_packed).as_py():
        return bodies
    pairs = zip(forms.to_pylist(), bodies.to_pylist(), strict=True)
    return pyarrow.array([unpacked(form, body) for form, body in pairs], bodies.type)


def unpacked(form: str, body: bytes | None) -> bytes | None:
    """A body before the producer's compression; None if there is no body.

    The broker checked before storing the body that it can be decompressed and how large it becomes.
    """
    if body is None or form not in COMPRESSED:
        return body
    if form == "zlib":
        return zlib.decompress(body)
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return bytes(zstd.decompress(body))


def _column(column: Any, wanted: pyarrow.DataType) -> Any:
    if pyarrow.types.is_map(wanted):
        return _maps(column, wanted)
    return column if column.type == wanted else column.cast(wanted)


def _maps(column: Any, wanted: pyarrow.MapType) -> pyarrow.MapArray:
    """Parses the properties, JSON of the broker. Other text stops the export: a null would hide a loss of data."""
    maps = [None if text is None else _properties.decode(text) for text in column.to_pylist()]
    ends = list(accumulate((len(one or ()) for one in maps), initial=0))
    starts = [None if one is None else start for one, start in zip(maps, ends, strict=False)]
    return pyarrow.MapArray.from_arrays(
        pyarrow.array([*starts, ends[-1]], pyarrow.int32()),
        pyarrow.array([name for one in maps if one for name in one], wanted.key_type),
        pyarrow.array([value for one in maps if one for value in one.values()], wanted.item_type),
        type=wanted,
    )
