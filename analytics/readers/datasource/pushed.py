"""Passes Spark's filters on to PostgreSQL: decides which mean the same in SQL, and which rows they select."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from psycopg.sql import Literal
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)
from pyspark.sql.types import BooleanType, DateType, IntegerType, LongType, ShortType, StringType, TimestampType

from analytics.closed import Span
from analytics.tables import DAY, Table

NUMBERS = (IntegerType, LongType, ShortType)
ORDERS = {GreaterThan: ">", GreaterThanOrEqual: ">=", LessThan: "<", LessThanOrEqual: "<="}
# UUIDs in the database, text in Spark.
IDS = ("message_id", "transaction_id")


@dataclass
class Pushed:
    """The filters on one table that PostgreSQL applies, and the bounds that they set for offsets."""

    table: Table
    filters: list[Filter] = field(default_factory=list)
    # The lowest value of each whole-number column, inclusive.
    lowest: dict[str, int] = field(default_factory=dict)
    highest: dict[str, int] = field(default_factory=dict)

    def take(self, filters: Iterable[Filter]) -> Iterable[Filter]:
        """Takes the filters that PostgreSQL can apply; returns the filters that Spark must apply itself."""
        for one in filters:
            if self._condition(one) is None:
                yield one
                continue
            self.filters.append(one)
            self._narrow(one)

    def conditions(self, table: Table) -> list[str]:
        """The filters as SQL conditions on this table, or on one with the same columns but another time for the day."""
        of_table = Pushed(table)
        return [condition for one in self.filters if (condition := of_table._condition(one))]

    def within(self, column: str, span: Span | None) -> Span | None:
        """The part of a span that lies within the filters' bounds for a column; None if no part does."""
        if span is None:
            return None
        first, last = max(span.first, self.lowest.get(column, span.first)), self.highest.get(column, span.last)
        return Span(first, min(span.last, last)) if first <= min(span.last, last) else None

    def _condition(self, of: Filter) -> str | None:
        """The filter as SQL; None if no SQL condition means the same."""
        match of:
            case Not(child=EqualTo() | In() | IsNull() as child):
                # Null satisfies neither a condition nor its negation, in SQL and in Spark.
                inner = self._condition(child)
                return None if inner is None else f"NOT ({inner})"
            case IsNull(attribute=(name,)):
                return f"{self._column(name)} IS NULL"
            case IsNotNull(attribute=(name,)):
                return f"{self._column(name)} IS NOT NULL"
            case In(attribute=(name,), value=values):
                return self._any_of(name, values)
            case EqualTo(attribute=(name,)) | EqualNullSafe(attribute=(name,)):
                return self._compared(name, "=" if isinstance(of, EqualTo) else "IS NOT DISTINCT FROM", of.value)
            case GreaterThan() | GreaterThanOrEqual() | LessThan() | LessThanOrEqual() if len(of.attribute) == 1:
                # PostgreSQL compares texts by collation, Spark by bytes.
                name = of.attribute[0]
                is_text = isinstance(self.table.columns[name].dataType, StringType)
                return None if is_text else self._compared(name, ORDERS[type(of)], of.value)
        return None

    def _any_of(self, name: str, values: Sequence[object]) -> str | None:
        literals = [self._literal(name, value) for value in values]
        if not literals or None in literals:
            return None
        return f"{self._column(name)} IN ({', '.join(str(literal) for literal in literals)})"

    def _compared(self, name: str, operator: str, value: object) -> str | None:
        literal = self._literal(name, value)
        return None if literal is None else f"{self._column(name)} {operator} {literal}"

    def _column(self, name: str) -> str:
        return f"(\"{self.table.day_of}\" AT TIME ZONE 'UTC')::date" if name == DAY else f'"{name}"'

    def _literal(self, name: str, value: object) -> str | None:
        """The value as a literal in SQL, if PostgreSQL compares the column's type as Spark does; else None."""
        kind = self.table.columns[name].dataType
        if isinstance(kind, StringType) and isinstance(value, str):
            return _text(name, value)
        is_number = isinstance(kind, NUMBERS) and isinstance(value, int)
        is_time = isinstance(kind, TimestampType) and isinstance(value, datetime)
        is_day = isinstance(kind, DateType) and isinstance(value, date)
        if is_number or is_time or is_day or (isinstance(kind, BooleanType) and isinstance(value, bool)):
            return str(Literal(value).as_string(None))
        return None

    def _narrow(self, of: Filter) -> None:
        """Keeps the bounds that a filter sets for a whole-number column."""
        match of:
            case EqualTo(attribute=(name,), value=int(value)) | EqualNullSafe(attribute=(name,), value=int(value)):
                self._bound(name, value, value)
            case In(attribute=(name,), value=values) if all(isinstance(value, int) for value in values):
                self._bound(name, min(values), max(values))
            case GreaterThan(attribute=(name,), value=int(value)):
                self._bound(name, value + 1, None)
            case GreaterThanOrEqual(attribute=(name,), value=int(value)):
                self._bound(name, value, None)
            case LessThan(attribute=(name,), value=int(value)):
                self._bound(name, None, value - 1)
            case LessThanOrEqual(attribute=(name,), value=int(value)):
                self._bound(name, None, value)

    def _bound(self, name: str, lowest: int | None, highest: int | None) -> None:
        if lowest is not None:
            self.lowest[name] = max(lowest, self.lowest.get(name, lowest))
        if highest is not None:
            self.highest[name] = min(highest, self.highest.get(name, highest))


def _text(name: str, value: str) -> str | None:
    """The text for a comparison in SQL; None if PostgreSQL cannot store such a text, so that no row equals it."""
    if "\0" in value:
        return None
    if name in IDS:
        try:
            if str(uuid.UUID(value)) != value:
                return None
        except ValueError:
            return None
    return str(Literal(value).as_string(None))
