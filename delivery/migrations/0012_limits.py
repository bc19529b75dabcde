"""Limits of a consumer group: their row, deliveries in flight by value, and the rates of values. Only added to.

The index has no row until a group has limits; while it is made, receipts are not written for some milliseconds.
"""

from django.db import migrations, models

import store.db.columns

# A row is written anew with each handout of its value: within its page, where there is room, because no index has
# `due_at`.
ROOM = "ALTER TABLE pace SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)"
AS_EVER = "ALTER TABLE pace RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)"


class Migration(migrations.Migration):
    dependencies = [("delivery", "0011_bundle_gate")]

    operations = [
        migrations.AddField(model_name="consumergroup", name="limits", field=models.JSONField(null=True)),
        migrations.AddField(model_name="receipt", name="limit_value", field=store.db.columns.CText(null=True)),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(
                condition=models.Q(("limit_value__isnull", False), ("state", "flight")),
                fields=["group_id", "origin_topic_id", "limit_value"],
                name="receipt_limited",
            ),
        ),
        migrations.CreateModel(
            name="Pace",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id", "topic_id", "value", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("group_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("value", store.db.columns.CText()),
                ("due_at", models.DateTimeField()),
            ],
            options={"db_table": "pace"},
        ),
        migrations.RunSQL(ROOM, AS_EVER),
    ]
