"""The history: figures by the minute, and the counters that they are differences of."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = [
        migrations.CreateModel(
            name="HistoryCounters",
            fields=[
                ("single", models.BooleanField(db_default=True, default=True, primary_key=True, serialize=False)),
                ("recorded_at", models.DateTimeField()),
                ("counters", models.JSONField()),
            ],
            options={
                "db_table": "history_counters",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("single", True)), name="history_counters_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoryFigure",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "figure",
                        "name",
                        "minute",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("figure", models.TextField()),
                ("name", models.TextField()),
                ("minute", models.DateTimeField()),
                ("value", models.FloatField()),
            ],
            options={
                "db_table": "history_figure",
                "indexes": [models.Index(fields=["minute"], name="history_figure_minute")],
            },
        ),
    ]
