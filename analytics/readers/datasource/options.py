"""The options of the data source by name. An unknown option or value is refused."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches

import msgspec

from analytics import closed
from analytics.errors import OptionRefused
from analytics.readers import address
from analytics.readers.datasource.chosen import Choice, Queues
from analytics.readers.datasource.published import STREAMED, TABLES

DEFAULT_TABLE = "committed"
NAMES = (
    "table",
    "columns",
    "url",
    "rows_per_slice",
    "topic",
    "topicPattern",
    "assign",
    "namespace",
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
)
OF_TOPICS = NAMES[4:7]
OF_BOUNDS = NAMES[8:12]
OF_READS = NAMES[10:12]
OF_STREAMS = NAMES[12:]
WITH_QUEUES = ("committed", "entries")
# Options that Spark adds in CREATE TABLE.
PROVIDER = "provider"
ENDS = EARLIEST, LATEST = ("earliest", "latest")
Position = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading begins or ends: at the first or last row, at the first row from a time on, or at a position.

    A queue that the position does not name begins or ends at `end`.
    """

    end: str
    position: Position | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """The options that the user gave to `option`. Each property checks its value and raises OptionRefused."""

    given: Mapping[str, str]

    def require_known(self) -> None:
        """Raises OptionRefused for the first unknown option, and names the most similar known option."""
        if PROVIDER in self.given:
            # A query of such a table would not get the options, and would read other rows than requested.
            raise OptionRefused(
                "Spark 4.3 loses the options of CREATE TABLE: use CREATE TEMPORARY VIEW with the same words."
            )
        known = {name.lower(): name for name in NAMES}
        for name in self.given:
            if name.lower() not in known:
                near = get_close_matches(name.lower(), known, 1)
                hint = f" Did you mean {known[near[0]]}?" if near else ""
                raise OptionRefused(f"There is no option {name}: give one of {', '.join(NAMES)}.{hint}")

    def require_of_reads(self) -> None:
        """Raises OptionRefused for an option that only streams use, or offsets of a table without an order."""
        for name in OF_STREAMS:
            if self._of(name):
                raise OptionRefused(f"{name} is an option of streams: give it to spark.readStream.")
        if any(map(self._of, OF_BOUNDS)):
            self.require_order()

    def require_of_streams(self) -> None:
        """Raises OptionRefused for an option that only a single read uses, and for a table without an order."""
        for name in OF_READS:
            if self._of(name):
                raise OptionRefused(f"{name} is no option of streams, which do not end: give it to spark.read.")
        self.require_order()

    def require_order(self) -> None:
        """Raises OptionRefused for a table whose rows have no offsets that only grow."""
        if self.table not in STREAMED:
            raise OptionRefused(
                f"The table {self.table} has no order to stream by: read it whole, or stream {', '.join(STREAMED)}."
            )

    @property
    def table(self) -> str:
        """The table to read."""
        table = self._of("table") or DEFAULT_TABLE
        if table not in TABLES:
            raise OptionRefused(f"There is no table {table}: give one of {', '.join(TABLES)}.")
        return table

    @property
    def columns(self) -> list[str]:
        """The names of the requested columns; empty for all."""
        return [name.strip() for name in self._of("columns").split(",") if name.strip()]

    @property
    def rows_per_slice(self) -> int:
        """The maximum number of rows that one task reads."""
        return self._whole("rows_per_slice") or closed.SLICE_ROWS

    @property
    def most_per_trigger(self) -> int | None:
        """The maximum number of offsets in one batch of a stream; None for no limit."""
        return self._whole("maxOffsetsPerTrigger")

    @property
    def choice(self) -> Choice:
        """The topics and queues to read."""
        given = [name for name in OF_TOPICS if self._of(name)]
        if len(given) > 1:
            raise OptionRefused(f"{' and '.join(given)} are both given: give one of them.")
        columns = TABLES[self.table].columns.names
        if (given and "topic" not in columns) or (self._of("namespace") and not {"topic", "namespace"} & {*columns}):
            raise OptionRefused(f"The rows of {self.table} have no topic: give no option {(*given, 'namespace')[0]}.")
        if self._of("assign") and self.table not in WITH_QUEUES:
            raise OptionRefused(f"assign is an option of {' and '.join(WITH_QUEUES)}: give topic or topicPattern.")
        names = tuple(name.strip() for name in self._of("topic").split(",") if name.strip())
        return Choice(names, _pattern(self._of("topicPattern")), self._assigned(), self._of("namespace"))

    @property
    def starting(self) -> Bound:
        """The beginning of a read, or of a stream without a checkpoint."""
        return self._bound("starting", EARLIEST)

    @property
    def ending(self) -> Bound:
        """The end of a read, exclusive."""
        return self._bound("ending", LATEST)

    @property
    def conninfo(self) -> str:
        """The connection string for libpq, of the option `url` or of DATABASE_URL."""
        url = self._of("url") or os.environ.get("DATABASE_URL")
        if not url:
            raise OptionRefused("No database is named: set DATABASE_URL where Spark's driver runs, or the option url.")
        return address.for_export(url)

    def _of(self, name: str) -> str:
        return str(self.given.get(name, ""))

    def _assigned(self) -> Queues:
        text = self._of("assign")
        try:
            return msgspec.json.decode(text, type=dict[str, list[int]]) if text else {}
        except msgspec.DecodeError as problem:
            raise OptionRefused(
                f'assign is {text}: give queues by topic as JSON, such as {{"orders": [0, 1]}}.'
            ) from problem

    def _bound(self, kind: str, end: str) -> Bound:
        offsets, time = self._of(f"{kind}Offsets"), self._of(f"{kind}Timestamp")
        if offsets and time:
            raise OptionRefused(f"{kind}Offsets and {kind}Timestamp are both given: give one of them.")
        if time:
            return Bound(end, since=_time(f"{kind}Timestamp", time))
        if offsets in ("", *ENDS):
            return Bound(offsets or end)
        return Bound(end, _position(f"{kind}Offsets", offsets))

    def _whole(self, name: str) -> int | None:
        given = self._of(name)
        if not given:
            return None
        if not given.isdecimal() or int(given) < 1:
            raise OptionRefused(f"{name} is {given}: give a whole number from 1 on.")
        return int(given)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise OptionRefused(f"topicPattern is {text}: give a regular expression ({problem}).") from problem
    return text


def _time(name: str, text: str) -> datetime:
    """Reads a time in ISO 8601 (UTC if it names no zone) or in milliseconds, as Spark's own sources do."""
    try:
        found = datetime.fromtimestamp(int(text) / 1000, UTC) if text.isdecimal() else datetime.fromisoformat(text)
    except (ValueError, OverflowError) as problem:
        raise OptionRefused(
            f"{name} is {text}: give a time such as 2026-03-01T12:00:00Z, or milliseconds since 1970."
        ) from problem
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _position(name: str, text: str) -> Position:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OptionRefused(
            f"{name} is {text}: give {ENDS[0]}, {ENDS[1]}, or a position as JSON, such as "
            '{"log_offset": 100} or {"orders": {"0": 23}}.'
        )
    return found
