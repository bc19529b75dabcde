"""Reads the broker's tables as Spark frames, by JDBC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from analytics.address import Address
from store.db.statements import Statement

FETCH_ROWS = 10_000
# The rows in a task's memory: 10,000 of 4 KiB. Heavier rows are fetched in smaller steps.
FETCH_BYTES = FETCH_ROWS * 4096
MIDDLE_WEIGHT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """The database that frames are read from."""

    spark: SparkSession
    address: Address

    def whole(self, statement: Statement[Any], schema: StructType, first: str) -> DataFrame:
        """All rows of a statement, read now by one session that begins with the statement `first`, and kept."""
        properties = {**self.address.properties, "fetchsize": str(FETCH_ROWS), "sessionInitStatement": first}
        frame = self.spark.read.jdbc(self.address.url, table(statement), properties=properties)
        return frame.to(schema).localCheckpoint(eager=True)

    def slices(
        self, statement: Statement[Any], schema: StructType, slices: Sequence[str], rows: int = FETCH_ROWS
    ) -> DataFrame:
        """The rows of the slices, one task each, fetched in steps of `rows`; an empty frame for no slice."""
        properties = {**self.address.properties, "fetchsize": str(rows)}
        # Spark wants one clause at least.
        clauses = list(slices) or ["false"]
        return self.spark.read.jdbc(self.address.url, table(statement), predicates=clauses, properties=properties).to(
            schema
        )

    def weighed(self, statement: Statement[Any], schema: StructType, slices: Sequence[str], heaviest: int) -> DataFrame:
        """The rows of the slices, by their `weight` in bytes: of heavier rows fewer are fetched at once."""
        frames = [
            self.slices(statement, schema, [f"({clause}) AND {bounds}" for clause in slices], rows)
            for bounds, rows in steps(heaviest)
        ]
        return reduce(DataFrame.unionAll, frames)


def table(statement: Statement[Any]) -> str:
    """A statement as a subquery for Spark; PostgreSQL prunes the table's partitions through it."""
    return f"({statement.text}) AS source"


def steps(heaviest: int) -> Iterator[tuple[str, int]]:
    """Classes of weight that cover all rows, each with the rows to fetch at once; `heaviest` is the usual limit."""
    light = FETCH_BYTES // FETCH_ROWS
    middle = max(light, min(MIDDLE_WEIGHT, heaviest))
    yield f"weight <= {light:d}", FETCH_ROWS
    yield f"weight > {light:d} AND weight <= {middle:d}", FETCH_BYTES // middle
    yield f"weight > {middle:d}", max(1, FETCH_BYTES // max(heaviest, middle))
