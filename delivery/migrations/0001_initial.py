import django.db.models.functions.datetime
from django.db import migrations, models

import store.db.columns
from store.db.partitioned_model import CreatePartitionedModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [("store", "0001_initial")]

    operations = [
        CreatePartitionedModel(
            name="Redrive",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id",
                        "queue_offset",
                        "segment_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("group_id", models.IntegerField()),
                ("queue_offset", models.BigIntegerField()),
                ("redriven_at", models.DateTimeField()),
            ],
            options={
                "db_table": "redrive",
            },
        ),
        migrations.CreateModel(
            name="ConsumerGroup",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name", store.db.columns.CText(unique=True)),
                ("start_at", models.TextField(default="earliest")),
                ("ordered", models.BooleanField(default=False)),
                ("max_reconsume_times", models.IntegerField(null=True)),
                ("retry_policy", models.JSONField(default=dict)),
                ("paused", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "consumer_group",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("start_at__in", ("earliest", "latest"))), name="group_start_known"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id",
                        "topic_id",
                        "queue_id",
                        "queue_offset",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("group_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("queue_offset", models.BigIntegerField()),
                ("nonce", models.BigIntegerField()),
                ("expires_at", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                ("log_segment", models.IntegerField()),
                ("log_offset", models.BigIntegerField()),
                ("tags_code", models.BigIntegerField()),
                ("reconsume_times", models.SmallIntegerField()),
                ("origin_topic_id", models.IntegerField()),
                ("state", models.TextField()),
                ("sharding_key", models.TextField(null=True)),
            ],
            options={
                "db_table": "receipt",
                "indexes": [
                    models.Index(condition=models.Q(("state", "flight")), fields=["expires_at"], name="receipt_expiry")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("flight", "held", "parked"))), name="receipt_state_known"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetryQueue",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "group_id", "topic_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("group_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
            ],
            options={
                "db_table": "retry_queue",
                "constraints": [
                    models.UniqueConstraint(fields=("group_id", "queue_id"), name="retry_queue_of_one_topic")
                ],
            },
        ),
    ]
