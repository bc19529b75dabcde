"""Copies the charts of the reports into the broker's database, for the console."""

import json
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as parquet
from django.db import DatabaseError, transaction

from analytics.connections import FIND_DATABASE
from analytics.errors import ExportFailed, FolderRefused
from analytics.models import ReportChart
from analytics.reports import charts
from analytics.reports.catalog import NAMES
from analytics.reports.job import MARKER
from store.db import sync


def show(reports: Path) -> None:
    """Replaces all charts of the console, in one transaction, with the charts of the reports in a folder.

    Raises FolderRefused if the reports are of another database's export.
    """
    made = json.loads((reports / MARKER).read_text(encoding="utf-8"))
    taken_at = datetime.fromisoformat(made["taken_at"])
    try:
        _require_same(made["database"])
        found = charts.of({name: parquet.read_table(reports / name) for name in NAMES})
        with transaction.atomic():
            ReportChart.objects.all().delete()
            ReportChart.objects.bulk_create(_row(number, chart, taken_at) for number, chart in enumerate(found))
    except DatabaseError as problem:
        reason = str(problem).partition("\n")[0]
        raise ExportFailed(f"The reports are in {reports}, but the console's charts are as they were: {reason}.") from (
            problem
        )


def _require_same(database: str) -> None:
    [here] = sync.read(FIND_DATABASE)
    if here != database:
        raise FolderRefused(
            f"The reports are of an export of another database ({database}, this is {here}), so its console does "
            "not show them: leave out --console."
        )


def _row(number: int, chart: charts.Chart, taken_at: datetime) -> ReportChart:
    return ReportChart(
        number=number,
        title=chart.title,
        about=chart.about,
        stacked=chart.stacked,
        labels=list(chart.labels),
        series={name: list(values) for name, values in chart.series.items()},
        taken_at=taken_at,
    )
