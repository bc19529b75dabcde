"""Deliveries of one receive in one row. The receipts that are out stay receipts, and their handles are taken."""

import django.contrib.postgres.fields
from django.db import migrations, models

# A row is written anew with each ack of a part of it: within its page where there is room, as no index has that column.
ROOM = "ALTER TABLE bundle SET (fillfactor = 70)"
AS_EVER = "ALTER TABLE bundle RESET (fillfactor)"


class Migration(migrations.Migration):
    dependencies = [("delivery", "0009_retry_queue_topic_name")]

    operations = [
        migrations.CreateModel(
            name="Bundle",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id",
                        "topic_id",
                        "queue_id",
                        "first_offset",
                        "nonce",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("group_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("first_offset", models.BigIntegerField()),
                ("nonce", models.BigIntegerField()),
                ("places", models.BigIntegerField()),
                ("unsettled", models.BigIntegerField()),
                ("expires_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                ("log_segment", models.IntegerField()),
                ("origin_topic_id", models.IntegerField()),
                ("log_offsets", django.contrib.postgres.fields.ArrayField(models.BigIntegerField())),
                ("tags_codes", django.contrib.postgres.fields.ArrayField(models.BigIntegerField(), null=True)),
            ],
            options={
                "db_table": "bundle",
                "indexes": [models.Index(fields=["expires_at"], name="bundle_expiry")],
            },
        ),
        migrations.RunSQL(ROOM, AS_EVER),
    ]
