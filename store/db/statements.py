"""SQL statements by name: one per file, in the `sql` folder of the app that owns the table, typed by its row."""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec
from psycopg.sql import SQL

RowType = TypeVar("RowType")
Value = TypeVar("Value")
PARAMETER = re.compile(r"%\(([a-z_]+)\)[sbt]")
# Matches a star in the statement's own SELECT, not in a subquery.
STAR = re.compile(r"^SELECT (\w+)\.\*$", re.MULTILINE)


class NoRow(NamedTuple):
    """The type of row for a statement that returns no rows, or one column without a value (`void`)."""


class Statement(Generic[RowType]):
    """The statement of one `.sql` file, read once, without the comments at its top.

    `row` is a NamedTuple or Struct whose fields are the statement's `columns` in their order; a test compares them.
    A statement of one column has values instead of rows: `one` is the type of the values, or `maybe` if they may be
    NULL.
    """

    __slots__ = ("_make", "columns", "handle", "name", "numbered", "one", "parameters", "row", "text")

    @overload
    def __init__(self: "Statement[NoRow]", beside: str, name: str) -> None: ...
    @overload
    def __init__(self, beside: str, name: str, row: type[RowType]) -> None: ...
    @overload
    def __init__(self, beside: str, name: str, *, one: type[RowType]) -> None: ...
    @overload
    def __init__(self: "Statement[Value | None]", beside: str, name: str, *, maybe: type[Value]) -> None: ...
    def __init__(self, beside: str, name: str, row: type[Any] = NoRow, *, one: Any = None, maybe: Any = None) -> None:
        app = next(folder for folder in Path(beside).parents if (folder / "sql").is_dir())
        lines = (app / "sql" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
        self.name = name
        self.row, self.one = row, one or maybe
        self._make, self.columns = _made(row, self.one)
        text = "\n".join(line for line in lines if not line.lstrip().startswith("--")).strip()
        self.text = _named(text, self.columns)
        # The statement in libpq's form: parameters are numbered in the order of their first occurrence.
        self.handle = f"{app.name}.{name}".encode()
        self.parameters = tuple(dict.fromkeys(PARAMETER.findall(self.text)))
        self.numbered = PARAMETER.sub(self._number, self.text).replace("%%", "%").encode()

    def _number(self, found: re.Match[str]) -> str:
        return f"${self.parameters.index(found[1]) + 1}"

    def sql(self) -> SQL:
        """The statement as psycopg's type `SQL`, for cursors that require it."""
        return SQL(self.text)

    def rows(self, _: Any) -> Callable[[Sequence[Any]], RowType]:
        """The row factory of this statement for psycopg."""
        return self._make


def _named(text: str, columns: Sequence[str]) -> str:
    """The statement with its columns by name in place of `alias.*`.

    A later version may add a column while processes of this version serve. PostgreSQL then refuses a prepared statement
    that selects `*`: "cached plan must not change result type".
    """
    return STAR.sub(lambda found: "SELECT " + ", ".join(f"{found[1]}.{column}" for column in columns), text)


def _made(row: type[Any], one: Any) -> tuple[Callable[[Sequence[Any]], Any], tuple[str, ...]]:
    """The function that makes a row (or value) from a tuple, and the names of the row's fields."""
    if one is not None:
        return itemgetter(0), ()
    if issubclass(row, msgspec.Struct):
        return lambda values: row(*values), row.__struct_fields__
    if row is NoRow:
        return lambda _: NoRow(), ()
    return row._make, row._fields
