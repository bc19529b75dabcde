"""The page of the reports: one HTML file that loads nothing else; all texts are escaped."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import pyarrow

from analytics.reports import charts, drawn, tables
from analytics.reports.catalog import REPORTS, Report
from analytics.reports.tables import Export

# The number of rows of a report on the page; its Parquet file has all.
MAX_ROWS = 200
BAR_WIDTH = 120
NONE = '<td class="none">–</td>'
# A second protection besides escaping: the browser loads nothing for this page and runs no script in it.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #1c2430; background: #fff; }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { margin: 0 0 .3rem; } h2 { margin: 2.4rem 0 .2rem; font-size: 1.15rem; }
p { margin: .2rem 0 .6rem; color: #53606f; }
nav a { margin-right: 1rem; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; }
th, td { text-align: left; padding: .22rem .7rem .22rem 0; border-bottom: 1px solid #e3e7ec; vertical-align: top; }
th { color: #53606f; font-weight: 600; } td { overflow-wrap: anywhere; max-width: 28rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } .none { color: #98a2ae; }
.time { white-space: nowrap; } rect { fill: #3b76c4; }
figure { margin: 1.6rem 0 0; } figcaption { color: #53606f; } figure text { font-size: 12px; fill: #53606f; }
"""


def of(exports: Sequence[Export], reports: Mapping[str, pyarrow.Table]) -> str:
    """The page of the reports of one export, or of the exports of all cells."""
    taken_at = _time(datetime.fromisoformat(tables.taken_at(exports)))
    about = "\n".join(_about(export) for export in exports)
    links = "".join(f'<a href="#{report.name}">{escape(report.title)}</a>' for report in REPORTS)
    over_time = "\n".join(drawn.over_time(chart) for chart in charts.over_time(reports))
    sections = "\n".join(_section(report, reports[report.name]) for report in REPORTS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reports of {taken_at}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Reports of {taken_at}</h1>
{about}
<nav>{links}</nav>
{over_time}
{sections}
</body>
</html>
"""


def _about(export: Export) -> str:
    cell, _, made = export
    held = f"{_number(made.rows['messages'])} rows of messages and {_number(made.rows['entries'])} entries"
    holes = f" Retention dropped rows before an export in {len(made.holes)} places." if made.holes else ""
    of, at = "", "this time"
    if cell:
        of, at = f" of the cell {escape(cell)},", _time(datetime.fromisoformat(made.taken_at))
    return f"""<p>The data{of} is that of an export of the database {escape(made.database)} at {at}, with
{held}.{holes} All times are UTC.</p>"""


def _section(report: Report, table: pyarrow.Table) -> str:
    heading = f'<h2 id="{report.name}">{escape(report.title)}</h2>\n<p>{escape(report.about)}</p>\n'
    if not table.num_rows:
        return f"<section>{heading}<p>No rows.</p></section>"
    rows = table.slice(0, MAX_ROWS).to_pylist()
    rest = f"<p>The first {MAX_ROWS} of {_number(table.num_rows)} rows.</p>" if table.num_rows > MAX_ROWS else ""
    return f'<section>{heading}<div class="wide">{_table(report, table.column_names, rows)}</div>{rest}</section>'


def _table(report: Report, names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    heads = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in (*names, report.bar))
    highest = max((row[report.bar] or 0 for row in rows), default=0)
    lines = [
        f"<tr>{''.join(_cell(row[name]) for name in names)}<td>{_bar(row[report.bar] or 0, highest)}</td></tr>"
        for row in rows
    ]
    return f"<table>\n<tr>{heads}</tr>\n" + "\n".join(lines) + "\n</table>"


def _cell(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, datetime):
        return f'<td class="time">{_time(value)}</td>'
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{_number(value)}</td>'
    return f"<td>{escape(str(value))}</td>"


def _bar(value: float, highest: float) -> str:
    width = max(value, 0) / highest * BAR_WIDTH if highest > 0 else 0
    return f'<svg width="{BAR_WIDTH}" height="10" role="presentation"><rect width="{width:.1f}" height="10"/></svg>'


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _time(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
