"""The charts of the reports for the console. Their size is limited, however large the export is."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow

# The number of bars: the latest hours in a time chart, the largest names in the others.
MAX_HOURS = 72
MAX_NAMES = 12
NO_NAME = "(deleted)"

Row = dict[str, Any]
Reports = Mapping[str, pyarrow.Table]


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart: each of the `series` has one value per label; the bars are stacked, or stand beside each other."""

    title: str
    about: str
    stacked: bool
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]


def of(reports: Reports) -> list[Chart]:
    """The charts of an export's reports in the order of the page, including charts without values."""
    return [
        *over_time(reports),
        by_name(
            reports["decision_times"].to_pylist(),
            "Seconds to decision",
            "by producer group, state and what gave it",
            ("p50_seconds", "p95_seconds", "p99_seconds"),
            lambda row: f"{row['producer_group'] or NO_NAME}, {row['state']} by {row['decided_by'] or '–'}",
        ),
        by_name(
            reports["lateness"].to_pylist(),
            "Seconds late",
            "delayed messages, by topic and delay level, or timer",
            ("p50_seconds", "p95_seconds", "p99_seconds"),
            _of_delay,
        ),
        by_name(
            summed(reports["retries"], "consumer_group", ("retries", "dead_letters")),
            "Retries and dead letters",
            "by consumer group",
            ("retries", "dead_letters"),
            lambda row: row["consumer_group"] or NO_NAME,
        ),
        by_name(
            summed(reports["discards"], "producer_group", ("transactions",)),
            "Transactions given up",
            "by producer group",
            ("transactions",),
            lambda row: row["producer_group"] or NO_NAME,
        ),
    ]


def over_time(reports: Reports) -> list[Chart]:
    """The charts by hour: transactions, and messages."""
    return [
        by_hour(
            reports["outcomes"],
            "Transactions by hour",
            "by the hour in which they were begun; one with messages of several topics counts in each",
            ("committed", "rolled_back", "discarded", "prepared"),
        ),
        by_hour(reports["volumes"], "Messages by hour", "by the hour in which they were stored", ("messages",)),
    ]


def _of_delay(row: Row) -> str:
    return f"{row['topic'] or NO_NAME}, {'timer' if row['level'] is None else 'level'} {row['level'] or ''}".rstrip()


def by_hour(report: pyarrow.Table, title: str, about: str, columns: Sequence[str]) -> Chart:
    """Sums of some columns for each of the latest hours that have rows, in order of time."""
    rows = [row for row in summed(report, "hour", columns) if row["hour"] is not None]
    latest = sorted(rows, key=lambda row: row["hour"])[-MAX_HOURS:]
    labels = [row["hour"].strftime("%m-%d %H:%M") for row in latest]
    return Chart(title, about, stacked=True, labels=labels, series=_series(latest, columns))


def by_name(rows: Sequence[Row], title: str, about: str, columns: Sequence[str], name: Callable[[Row], str]) -> Chart:
    """Some columns of the rows with the largest value in the last of these columns; `name` gives the label of a row."""
    known = [row for row in rows if any(row[column] for column in columns)]
    largest = sorted(known, key=lambda row: row[columns[-1]] or 0, reverse=True)[:MAX_NAMES]
    return Chart(
        title,
        about,
        stacked=False,
        labels=[_in_cell(name(row), row) for row in largest],
        series=_series(largest, columns),
    )


def _in_cell(label: str, row: Row) -> str:
    """Adds the cell to a label, because a group may have rows in several cells."""
    return f"{label} ({row['cell']})" if "cell" in row else label


def summed(report: pyarrow.Table, by: str, columns: Sequence[str]) -> list[Row]:
    """The sums of some columns for each value of the column `by`."""
    sums: dict[Any, dict[str, float]] = defaultdict(lambda: dict.fromkeys(columns, 0))
    for row in report.to_pylist():
        for column in columns:
            sums[row[by]][column] += row[column] or 0
    return [{by: value, **found} for value, found in sums.items()]


def _series(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, list[float | None]]:
    return {column.removesuffix("_seconds").replace("_", " "): [row[column] for row in rows] for column in columns}
