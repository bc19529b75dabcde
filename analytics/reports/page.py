"""The page of the reports: one HTML file that loads nothing else; Django's template escapes all texts."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
from django.template import Context, Engine

from analytics.reports import charts, tables
from analytics.reports.catalog import REPORTS, Report
from analytics.reports.charts import Chart
from analytics.reports.tables import Export

# The number of rows of a report on the page; its Parquet file has all.
MAX_ROWS = 200
BAR_WIDTH = 120
# The size of a bar chart. The page's template leaves TOP pixels above the bars, and as many below them, for texts.
WIDTH, HEIGHT, TOP = 960, 150, 18
MAX_BAR_WIDTH = 24
COLORS = ("#3b76c4", "#c2573a", "#7a8798", "#d3a02a")


def of(exports: Sequence[Export], reports: Mapping[str, pyarrow.Table]) -> str:
    """The page of the reports of one export, or of the exports of all cells."""
    context = {
        "taken_at": _time(datetime.fromisoformat(tables.taken_at(exports))),
        "exports": [_about(export) for export in exports],
        "charts": [_drawn(chart) for chart in charts.over_time(reports) if _totals(chart)],
        "reports": [_section(report, reports[report.name]) for report in REPORTS],
        "width": WIDTH,
    }
    return Engine(dirs=[str(Path(__file__).parent)]).get_template("page.html").render(Context(context))


def _about(export: Export) -> dict[str, Any]:
    made = export.made
    return {
        "cell": export.cell,
        "database": made.database,
        "taken_at": _time(datetime.fromisoformat(made.taken_at)),
        "messages": _number(made.rows["messages"]),
        "entries": _number(made.rows["entries"]),
        "holes": len(made.holes),
    }


def _section(report: Report, table: pyarrow.Table) -> dict[str, Any]:
    rows = table.slice(0, MAX_ROWS).to_pylist()
    highest = max((row[report.bar] or 0 for row in rows), default=0)
    return {
        "name": report.name,
        "title": report.title,
        "about": report.about,
        "heads": [name.replace("_", " ") for name in (*table.column_names, report.bar)],
        "rows": [(map(_cell, row.values()), _width(row[report.bar] or 0, highest)) for row in rows],
        "rest": f"The first {MAX_ROWS} of {table.num_rows:,} rows." if table.num_rows > MAX_ROWS else "",
    }


def _cell(value: Any) -> tuple[str, str]:
    """The class and the text of a cell."""
    if value is None:
        return "none", "–"
    if isinstance(value, datetime):
        return "time", _time(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", _number(value)
    return "", str(value)


def _width(value: float, highest: float) -> str:
    return f"{max(value, 0) / highest * BAR_WIDTH if highest > 0 else 0:.1f}"


def _drawn(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "about": chart.about,
        "keys": list(zip(chart.series, COLORS, strict=False)),
        "highest": f"{max(_totals(chart)):,.0f}",
        "bars": [bar for number in range(len(chart.labels)) for bar in _bars(chart, number)],
        "first": chart.labels[0],
        "last": chart.labels[-1],
    }


def _totals(chart: Chart) -> list[float]:
    """The sum of each bar; empty for a chart without values."""
    totals = [sum(values[number] or 0 for values in chart.series.values()) for number in range(len(chart.labels))]
    return totals if any(totals) else []


def _bars(chart: Chart, number: int) -> Iterator[dict[str, str]]:
    step, highest = WIDTH / len(chart.labels), max(_totals(chart))
    width, left, top = min(step * 0.8, MAX_BAR_WIDTH), (number + 0.1) * step, float(HEIGHT + TOP)
    for (name, values), color in zip(chart.series.items(), COLORS, strict=False):
        if value := values[number]:
            height = value / highest * HEIGHT
            top -= height
            shape = f"M{left:.1f} {top:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z"
            yield {"color": color, "shape": shape, "said": f"{chart.labels[number]}: {name} {value:,.0f}"}


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _time(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
