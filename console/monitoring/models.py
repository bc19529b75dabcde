"""The tables of the history: figures of the broker by the minute, and the counters from which rates are made."""

from django.db import models


class HistoryFigure(models.Model):
    """One figure in one minute, of the whole broker or of `name`. A figure of 0 has no row, except `stored`.

    The rows are kept in the control, for HISTORY_DAYS.
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
    """The counters at the latest recorded minute: one row, which the recording process changes."""

    single = models.BooleanField(primary_key=True, default=True, db_default=True)
    recorded_at = models.DateTimeField()
    counters = models.JSONField()

    class Meta:
        db_table = "history_counters"
        constraints = (models.CheckConstraint(condition=models.Q(single=True), name="history_counters_once"),)
