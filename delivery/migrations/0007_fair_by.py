"""What a fair group parts messages by, and the entries that it has read ahead. Only added to."""

import django.contrib.postgres.fields
from django.db import migrations, models

import store.db.columns

# A row is written anew with each message that is taken of it: within its page where there is room, as no index has that
# column.
ROOM = """
ALTER TABLE waiting SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)
"""
AS_EVER = "ALTER TABLE waiting RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)"


class Migration(migrations.Migration):
    dependencies = [("delivery", "0006_queue_order")]

    operations = [
        migrations.AddField(
            model_name="consumergroup",
            name="fair_by",
            field=models.TextField(null=True),
        ),
        migrations.CreateModel(
            name="Waiting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id",
                        "topic_id",
                        "fair_key",
                        "log_segment",
                        "log_offset",
                        "queue_topic_id",
                        "queue_id",
                        "first_offset",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("group_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("fair_key", store.db.columns.CText()),
                ("log_segment", models.IntegerField()),
                ("log_offset", models.BigIntegerField()),
                ("queue_topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("first_offset", models.BigIntegerField()),
                ("offsets", django.contrib.postgres.fields.ArrayField(models.BigIntegerField())),
                ("taken", models.IntegerField()),
            ],
            options={"db_table": "waiting"},
        ),
        migrations.RunSQL(ROOM, AS_EVER),
    ]
