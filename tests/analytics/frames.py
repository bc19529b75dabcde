"""Literal rows as frames of an export's tables, and the rows of a report."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from analytics.reports.tables import Tables
from analytics.tables import CHECK_COLUMNS, ENTRY_COLUMNS, MESSAGE_COLUMNS, TIMER_COLUMNS, TRANSACTION_COLUMNS

Row = dict[str, Any]
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SCHEDULE = "SCHEDULE_TOPIC_XXXX"


class Frames:
    """Literal rows as frames of the export's tables; a column that a row does not name is null."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def _frame(self, columns: StructType, rows: tuple[Row, ...]) -> DataFrame:
        assert all(row.keys() <= set(columns.names) for row in rows)
        return self._spark.createDataFrame([tuple(row.get(name) for name in columns.names) for row in rows], columns)

    def messages(self, *rows: Row) -> DataFrame:
        return self._frame(MESSAGE_COLUMNS, rows)

    def entries(self, *rows: Row) -> DataFrame:
        return self._frame(ENTRY_COLUMNS, rows)

    def transactions(self, *rows: Row) -> DataFrame:
        return self._frame(TRANSACTION_COLUMNS, rows)

    def checks(self, *rows: Row) -> DataFrame:
        return self._frame(CHECK_COLUMNS, rows)

    def timers(self, *rows: Row) -> DataFrame:
        return self._frame(TIMER_COLUMNS, rows)

    def empty(self) -> Tables:
        """An export without a row."""
        return Tables(NOON, self.messages(), self.entries(), self.transactions(), self.checks(), self.timers())


def after(seconds: float) -> datetime:
    """A time, in seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def message(offset: int, topic: str | None = "orders", **others: Any) -> Row:
    """A message of 10 bytes, stored at noon."""
    row = {"log_offset": offset, "message_id": f"m{offset}", "topic": topic, "body_bytes": 10, "stored_at": NOON}
    return row | others


def transaction(name: str, state: str, seconds: float | None = 1.0, **others: Any) -> Row:
    """A transaction of one message, begun at noon and decided so many seconds later."""
    decided = {"decided_by": "producer", "decided_at": None if seconds is None else after(seconds)}
    known = {"transaction_id": name, "producer_group": "shop", "state": state, "prepared_at": NOON, "messages": 1}
    return known | decided | {"seconds_to_decision": seconds} | others


def entry(offset: int, topic: str, at: float, **others: Any) -> Row:
    """An entry of the message at log offset 1, made so many seconds after noon."""
    return {
        "topic": topic,
        "queue_offset": offset,
        "log_offset": 1,
        "entered_at": after(at),
        "reconsume_times": 0,
    } | others


def delayed(offset: int, due: float, at: float = 0, topic: str = "orders", **others: Any) -> Row:
    """An entry at delay level 3."""
    known = {"queue_id": 2, "real_topic": topic, "real_queue_id": 0, "deliver_at": after(due)}
    return entry(offset, SCHEDULE, at) | known | others


def rows(report: DataFrame, *columns: str) -> list[Row]:
    """Every row of a report, in the order of all its columns; of times the moment in UTC."""
    found = [{name: _utc(value) for name, value in row.asDict().items()} for row in report.collect()]
    found.sort(key=lambda row: tuple(str(value) for value in row.values()))
    return [{name: row[name] for name in columns} for row in found] if columns else found


def _utc(value: Any) -> Any:
    # Spark gives times without a zone, in that of the machine.
    return value.astimezone(UTC) if isinstance(value, datetime) else value
