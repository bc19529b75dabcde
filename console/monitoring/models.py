"""The tables of the history: figures of the broker by the minute, and the counters that they are differences of."""

from django.db import models


class HistoryFigure(models.Model):
    """One figure in one minute, of the whole broker or of what `name` names; a figure of 0 has no row, but `stored`.

    Kept in the control, for HISTORY_DAYS.
    """

    pk = models.CompositePrimaryKey("figure", "name", "minute")
    figure = models.TextField()
    name = models.TextField()
    minute = models.DateTimeField()
    value = models.FloatField()

    class Meta:
        db_table = "history_figure"
        indexes = (models.Index(fields=("minute",), name="history_figure_minute"),)


class HistoryCounters(models.Model):
    """What was counted up to the latest minute of the history; one row, which the process that records it changes."""

    single = models.BooleanField(primary_key=True, default=True, db_default=True)
    recorded_at = models.DateTimeField()
    counters = models.JSONField()

    class Meta:
        db_table = "history_counters"
        constraints = (models.CheckConstraint(condition=models.Q(single=True), name="history_counters_once"),)
