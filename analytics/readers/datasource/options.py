"""The options of the data source by name. An unknown option or value is refused."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches

from analytics.errors import OptionRefused
from analytics.readers import address, slices
from analytics.readers.datasource.published import STREAMED, TABLES

DEFAULT_TABLE = "committed"
NAMES = (
    "table",
    "columns",
    "url",
    "rows_per_slice",
    "pushdown",
    "maxOffsetsPerTrigger",
    "startingOffsets",
    "startingTimestamp",
)
OF_STREAMS = NAMES[5:]
ENDS = ("earliest", "latest")
Position = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Starting:
    """Where a stream without a checkpoint begins: at the first or last row, at a position, or after a time."""

    end: str = ENDS[0]
    position: Position | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """The options that the user gave to `option`. Each property checks its value and raises OptionRefused."""

    given: Mapping[str, str]

    def require_known(self) -> None:
        """Raises OptionRefused for the first unknown option, and names the most similar known option."""
        known = {name.lower(): name for name in NAMES}
        for name in self.given:
            if name.lower() not in known:
                near = get_close_matches(name.lower(), known, 1)
                hint = f" Did you mean {known[near[0]]}?" if near else ""
                raise OptionRefused(f"There is no option {name}: give one of {', '.join(NAMES)}.{hint}")

    def require_none_of_streams(self) -> None:
        """Raises OptionRefused for an option that only streams use."""
        for name in OF_STREAMS:
            if self._of(name):
                raise OptionRefused(f"{name} is an option of streams: give it to spark.readStream.")

    @property
    def table(self) -> str:
        """The table to read."""
        table = self._of("table") or DEFAULT_TABLE
        if table not in TABLES:
            raise OptionRefused(f"There is no table {table}: give one of {', '.join(TABLES)}.")
        return table

    @property
    def streamed(self) -> str:
        """The table to read as a stream."""
        if self.table not in STREAMED:
            raise OptionRefused(
                f"The table {self.table} has no order to stream by: read it whole, or stream {', '.join(STREAMED)}."
            )
        return self.table

    @property
    def columns(self) -> list[str]:
        """The names of the requested columns; empty for all."""
        return [name.strip() for name in self._of("columns").split(",") if name.strip()]

    @property
    def pushdown(self) -> bool:
        """Whether filters of Spark are passed on to PostgreSQL."""
        given = self._of("pushdown").lower()
        if given not in ("", "true", "false"):
            raise OptionRefused(f"pushdown is {given}: give true or false.")
        return given == "true"

    @property
    def rows_per_slice(self) -> int:
        """The maximum number of rows that one task reads."""
        return self._whole("rows_per_slice") or slices.SLICE_ROWS

    @property
    def most_per_trigger(self) -> int | None:
        """The maximum number of offsets in one batch of a stream; None for no limit."""
        return self._whole("maxOffsetsPerTrigger")

    @property
    def starting(self) -> Starting:
        """Where a stream without a checkpoint begins."""
        offsets, time = self._of("startingOffsets"), self._of("startingTimestamp")
        if offsets and time:
            raise OptionRefused("startingOffsets and startingTimestamp are both given: give one of them.")
        if time:
            return Starting(since=_time(time))
        if offsets in ("", *ENDS):
            return Starting(offsets or ENDS[0])
        return Starting(position=_position(offsets))

    @property
    def conninfo(self) -> str:
        """The connection string for libpq, of the option `url` or of DATABASE_URL."""
        url = self._of("url") or os.environ.get("DATABASE_URL")
        if not url:
            raise OptionRefused("No database is named: set DATABASE_URL where Spark's driver runs, or the option url.")
        return address.for_export(url)

    def _of(self, name: str) -> str:
        return str(self.given.get(name, ""))

    def _whole(self, name: str) -> int | None:
        given = self._of(name)
        if not given:
            return None
        if not given.isdecimal() or int(given) < 1:
            raise OptionRefused(f"{name} is {given}: give a whole number from 1 on.")
        return int(given)


def _time(text: str) -> datetime:
    """Reads a time in ISO 8601 (UTC if it names no zone) or in milliseconds, as Spark's own sources do."""
    try:
        found = datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdecimal() else datetime.fromisoformat(text)
    except (ValueError, OverflowError) as problem:
        raise OptionRefused(
            f"startingTimestamp is {text}: give a time such as 2026-03-01T12:00:00Z, or milliseconds since 1970."
        ) from problem
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _position(text: str) -> Position:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionRefused(
            f"startingOffsets is {text}: give {ENDS[0]}, {ENDS[1]}, or a position as JSON, such as "
            '{"log_offset": 100} or {"orders": {"0": 23}}.'
        )
    return found
