"""The tables of analytics: the nightly runs, and the charts of the latest reports for the console."""

from django.db import models


class NightlyRun(models.Model):
    """A nightly export with its reports, by the day (UTC) on which it was due.

    due ──a worker claims it──▶ running ──▶ ended, with a failure or without
                                   └── its process is gone ──▶ claimed again

    It runs while a process holds the lock of the nightly run. `tries` counts the attempts that were begun, `failures`
    the attempts that failed or left no outcome.
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
    """A chart of the latest reports, small enough for a page: `labels`, and `series` with one value for each label."""

    number = models.IntegerField(primary_key=True)
    title = models.TextField()
    about = models.TextField()
    stacked = models.BooleanField()
    labels = models.JSONField()
    series = models.JSONField()
    # The moment of the export from which the reports were made.
    taken_at = models.DateTimeField()

    class Meta:
        db_table = "report_chart"
        ordering = ("number",)
