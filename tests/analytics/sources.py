"""The data source `mqbroker` without a Spark: this process does what Spark asks its Python workers for."""

from collections.abc import Sequence

import pyarrow
from pyspark.sql.datasource import InputPartition

from analytics.readers.datasource.reading import BrokerReader
from analytics.readers.datasource.streams import BrokerStream
from analytics.stream import BrokerSource
from tests.analytics.parquet import Row


def source(url: str, **options: object) -> BrokerSource:
    """The source with its options, as `spark.read.format("mqbroker").options(…)` has it."""
    return BrokerSource({"url": url, **{name: str(value) for name, value in options.items()}})


def read(url: str, **options: object) -> list[Row]:
    """The rows of a table, read once."""
    of = source(url, **options)
    reader = of.reader(of.schema())
    return _rows(reader, reader.partitions())


def stream(url: str, **options: object) -> BrokerStream:
    """A stream of a table."""
    of = source(url, **options)
    return of.streamReader(of.schema())


def streamed(url: str, **options: object) -> list[Row]:
    """The rows of the first batch of a stream without a checkpoint."""
    of = stream(url, **options)
    start = of.initialOffset()
    return _rows(of, of.partitions(start, of.latestOffset(start, of.getDefaultReadLimit())))


def _rows(reader: BrokerReader | BrokerStream, parts: Sequence[InputPartition]) -> list[Row]:
    batches = [batch for part in parts for batch in reader.read(part)]
    rows: list[Row] = pyarrow.Table.from_batches(batches).to_pylist(maps_as_pydicts="strict") if batches else []
    return rows
