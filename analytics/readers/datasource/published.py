"""The tables of the data source: the tables of the export with a column for the day, and the table `committed`."""

from collections.abc import Sequence

from pyspark.sql.types import DateType, StringType, StructField, StructType

from analytics.errors import OptionRefused
from analytics.tables import (
    CHECKS,
    COPIED,
    DAY,
    ENDED,
    ENTRIES,
    MESSAGE_COLUMNS,
    MESSAGES,
    TIMERS,
    UNDECIDED,
    Table,
    columns,
)
from store.db.statements import Statement


def _with_day(table: Table, *others: StructField) -> Table:
    """The table with extra columns that its files lack, and with the day by which its files are sorted into folders."""
    day = [StructField(DAY, DateType())] if table.day_of else []
    return Table(table.statement, StructType([*table.columns, *others, *day]), table.day_of)


# A message as consumers see it: when it became visible, at which queue offset, for which reason, and its fields.
COMMITTED_COLUMNS = StructType(
    [
        *columns(
            "topic string, queue_id integer, queue_offset long, state string, due_at timestamp, entered_at timestamp"
        ),
        *(column for column in MESSAGE_COLUMNS if column.name not in ("topic", "queue_id", "copy_of", COPIED)),
    ]
)
COMMITTED = _with_day(Table(Statement(__file__, "read_committed"), COMMITTED_COLUMNS, "entered_at"))
TABLES = {
    "committed": COMMITTED,
    "messages": _with_day(MESSAGES, StructField("state", StringType())),
    "entries": _with_day(ENTRIES),
    "transactions": _with_day(ENDED),
    "checks": _with_day(CHECKS),
    "timers": TIMERS,
}
OPEN = _with_day(UNDECIDED)
# The tables whose rows have an offset that only grows.
STREAMED = ("committed", "messages", "entries", "transactions")


def narrowed(table: str, names: Sequence[str]) -> StructType:
    """The columns with these names, in this order. Raises OptionRefused for a name that is no column of the table."""
    columns = TABLES[table].columns
    for name in names:
        if name not in columns.names:
            raise OptionRefused(f"The table {table} has no column {name}: give one of {', '.join(columns.names)}.")
    return StructType([columns[name] for name in names])


def require_ours(table: str, schema: StructType) -> None:
    """Raises OptionRefused unless each column of the user's schema is a column of the table and has its type."""
    for column, known in zip(schema, narrowed(table, schema.names), strict=True):
        if column.dataType != known.dataType:
            raise OptionRefused(
                f"The column {column.name} of {table} is {known.dataType.simpleString()}, not "
                f"{column.dataType.simpleString()}."
            )
