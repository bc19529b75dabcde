"""The tables of analytics: the nightly runs, and the charts that the latest reports left for the console."""

from django.db import models


class NightlyRun(models.Model):
    """One night's export with its reports, by the day (UTC) on which its time came.

    due ──a worker claims it──▶ running ──▶ ended, with a failure or without
                                   └── its process is gone ──▶ claimed again
    It runs while a process holds the lock of the nightly run. `tries` are those that were begun, `failures` those that
    failed or left no outcome.
    """

    day = models.DateField(primary_key=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    tries = models.IntegerField()
    failures = models.IntegerField()
    failure = models.TextField(null=True)

    class Meta:
        db_table = "nightly_run"


class ReportChart(models.Model):
    """A chart of the latest reports, small enough for a page: `labels`, and `series` of as many values each."""

    number = models.IntegerField(primary_key=True)
    title = models.TextField()
    about = models.TextField()
    stacked = models.BooleanField()
    labels = models.JSONField()
    series = models.JSONField()
    # The moment of the export that the reports are of.
    taken_at = models.DateTimeField()

    class Meta:
        db_table = "report_chart"
        ordering = ("number",)
