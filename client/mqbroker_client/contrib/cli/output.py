"""The output of `mqb`: aligned columns for people, JSON for programs."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Output:
    """Prints rows to standard output, and all other texts to standard error."""

    as_json: bool
    stream: TextIO

    def rows(self, rows: Sequence[Row], columns: Sequence[str], none: str) -> None:
        """Prints a table with these columns; with --json, each complete row on a line."""
        if self.as_json:
            for row in rows:
                self._print(json.dumps(row, ensure_ascii=False))
        elif rows:
            self._table([[_on_one_line(_shown(row.get(column))) for column in columns] for row in rows], columns)
        else:
            self.say(none)

    def one(self, row: Row, text: str) -> None:
        """Prints one result: its text, or with --json the whole result."""
        self._print(json.dumps(row, ensure_ascii=False) if self.as_json else _on_one_line(text))

    def say(self, text: str) -> None:
        """A remark."""
        print(text, file=sys.stderr, flush=True)

    def _table(self, cells: list[list[str]], columns: Sequence[str]) -> None:
        cells = [[column.replace("_", " ") for column in columns], *cells]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            self._print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def _print(self, text: str) -> None:
        # Flushed, because the reader of `tail` waits for each line.
        print(text, file=self.stream, flush=True)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _on_one_line(text: str) -> str:
    """The text with control characters escaped, because a body may move the terminal's cursor or begin a new line."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
