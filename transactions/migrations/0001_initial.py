import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import store.db.columns
from store.db.partitioned_model import CreatePartitionedModel


class Migration(migrations.Migration):
    initial = True

    dependencies = [("store", "0001_initial")]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE operation_id", "DROP SEQUENCE operation_id"),
        migrations.CreateModel(
            name="ProducerGroup",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name", store.db.columns.CText(unique=True)),
                ("reject_transaction_message", models.BooleanField(default=False)),
                ("max_undecided", models.IntegerField(null=True)),
                ("checks_paused", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "producer_group",
            },
        ),
        CreatePartitionedModel(
            name="CheckAttempt",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "attempt_id", "segment_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("attempt_id", models.UUIDField()),
                ("transaction_id", models.UUIDField()),
                ("endpoint_id", models.IntegerField(null=True)),
                ("endpoint_url", models.TextField(null=True)),
                ("asked_at", models.DateTimeField()),
                ("counted", models.BooleanField()),
                ("status", models.IntegerField(null=True)),
                ("latency_ms", models.IntegerField(null=True)),
                ("answer", models.TextField(null=True)),
                ("reason", models.TextField(null=True)),
            ],
            options={
                "db_table": "check_attempt",
                "indexes": [models.Index(fields=["transaction_id"], name="check_attempt_transaction")],
            },
        ),
        migrations.CreateModel(
            name="HalfMessage",
            fields=[
                ("transaction_id", models.UUIDField(primary_key=True, serialize=False)),
                ("producer_group_id", models.IntegerField()),
                ("endpoint_id", models.IntegerField(null=True)),
                ("stored_at", models.DateTimeField()),
                ("immunity_seconds", models.FloatField()),
                ("next_check_at", models.DateTimeField()),
                ("check_times", models.IntegerField(default=0)),
                ("exhausted", models.BooleanField(default=False)),
                ("last_failure", models.TextField(null=True)),
                ("discarded_at", models.DateTimeField(null=True)),
                ("log_segment", models.IntegerField()),
                (
                    "log_offsets",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("message_ids", django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ("topic_ids", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ("queue_ids", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                (
                    "tags_codes",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("delays", models.JSONField(null=True)),
            ],
            options={
                "db_table": "half_message",
                "indexes": [
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", True)),
                        fields=["producer_group_id", "next_check_at"],
                        name="half_message_due",
                    ),
                    models.Index(
                        condition=models.Q(("discarded_at__isnull", True), ("exhausted", True)),
                        fields=["next_check_at"],
                        name="half_message_exhausted",
                    ),
                    models.Index(fields=["producer_group_id", "stored_at"], name="half_message_group"),
                ],
            },
        ),
        CreatePartitionedModel(
            name="Operation",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "operation_id", "segment_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("operation_id", models.BigIntegerField()),
                ("transaction_id", models.UUIDField()),
                ("producer_group_id", models.IntegerField()),
                ("decision", models.TextField()),
                ("decided_by", models.TextField()),
                ("decided_at", models.DateTimeField()),
                ("check_times", models.IntegerField()),
                ("stored_at", models.DateTimeField()),
                ("log_segment", models.IntegerField()),
                (
                    "log_offsets",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("message_ids", django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ("topic_ids", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                ("queue_ids", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
                (
                    "queue_offsets",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(null=True), null=True, size=None
                    ),
                ),
                ("remark", models.TextField(null=True)),
            ],
            options={
                "db_table": "operation",
                "indexes": [models.Index(fields=["transaction_id"], name="operation_transaction")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("decision__in", ("COMMIT", "ROLLBACK"))),
                        fields=("transaction_id", "segment_id"),
                        name="operation_decides_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("url", models.TextField()),
                ("max_batch", models.IntegerField(default=1)),
                ("timeout_seconds", models.FloatField(default=5)),
                ("concurrency", models.IntegerField(default=16)),
                ("secret", models.TextField()),
                ("previous_secret", models.TextField(null=True)),
                ("rotated_at", models.DateTimeField(null=True)),
                ("state", models.TextField(default="healthy")),
                ("failures", models.IntegerField(default=0)),
                ("open_until", models.DateTimeField(null=True)),
                ("last_failure", models.TextField(null=True)),
                ("last_failure_at", models.DateTimeField(null=True)),
                ("last_success_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "group",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="endpoints",
                        to="transactions.producergroup",
                    ),
                ),
            ],
            options={
                "db_table": "endpoint",
                "constraints": [
                    models.UniqueConstraint(fields=("group", "url"), name="endpoint_once_per_group"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("healthy", "open", "half_open", "disabled"))),
                        name="endpoint_state_known",
                    ),
                ],
            },
        ),
    ]
