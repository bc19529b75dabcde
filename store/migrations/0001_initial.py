import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models

import store.db.columns
from store.db.partitioned_model import CreatePartitionedModel

FIRST_SEGMENT = "INSERT INTO segment (id, state, opened_at) VALUES (1, 'open', now())"
LOG_OFFSETS = "CREATE SEQUENCE commit_log_offset MINVALUE 0 START 0"
# A level beyond the queues of the schedule topic adds queues to it; the discarded need one queue only.
SYSTEM_TOPICS = """
INSERT INTO topic (name, queues, permission)
VALUES ('SCHEDULE_TOPIC_XXXX', 18, 'r'), ('TRANS_CHECK_MAX_TIME_TOPIC', 1, 'r')
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Segment",
            fields=[
                ("id", models.IntegerField(primary_key=True, serialize=False)),
                ("state", models.TextField(default="ready")),
                ("opened_at", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
                ("dropped_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "segment",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("ready", "open", "closed", "dropped"))),
                        name="segment_state_known",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "open")), fields=("state",), name="segment_one_is_open"
                    ),
                ],
            },
        ),
        migrations.RunSQL(FIRST_SEGMENT, migrations.RunSQL.noop),
        migrations.RunSQL(LOG_OFFSETS, "DROP SEQUENCE commit_log_offset"),
        CreatePartitionedModel(
            name="ConsumeQueue",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "topic_id",
                        "queue_id",
                        "queue_offset",
                        "segment_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("queue_offset", models.BigIntegerField()),
                ("log_segment", models.IntegerField()),
                ("log_offset", models.BigIntegerField()),
                ("tags_code", models.BigIntegerField()),
                ("reconsume_times", models.SmallIntegerField()),
                ("entered_at", models.DateTimeField()),
                ("real_topic_id", models.IntegerField(null=True)),
                ("real_queue_id", models.IntegerField(null=True)),
                ("real_tags_code", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "consume_queue",
                "indexes": [models.Index(fields=["log_offset"], name="consume_queue_message")],
            },
        ),
        CreatePartitionedModel(
            name="Progress",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "reader_id",
                        "topic_id",
                        "queue_id",
                        "move",
                        "segment_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("reader_id", models.IntegerField()),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("move", models.BigIntegerField()),
                ("next_offset", models.BigIntegerField()),
                ("moved_at", models.DateTimeField()),
            ],
            options={
                "db_table": "progress",
            },
        ),
        migrations.CreateModel(
            name="QueueFloor",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "topic_id", "queue_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("min_offset", models.BigIntegerField()),
            ],
            options={
                "db_table": "queue_floor",
            },
        ),
        CreatePartitionedModel(
            name="CommitLog",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "log_offset", "segment_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("log_offset", models.BigIntegerField()),
                ("stored_at", models.DateTimeField()),
                ("born_at", models.DateTimeField(null=True)),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("message_id", models.UUIDField()),
                ("transaction_id", models.UUIDField(null=True)),
                ("producer_group_id", models.IntegerField(null=True)),
                ("tags", models.TextField(null=True)),
                (
                    "keys",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None),
                ),
                ("sharding_key", models.TextField(null=True)),
                ("traceparent", models.TextField(null=True)),
                ("properties", models.BinaryField(null=True)),
                ("body", models.BinaryField()),
                ("body_form", models.TextField()),
            ],
            options={
                "db_table": "commit_log",
                "indexes": [
                    models.Index(
                        condition=models.Q(("transaction_id__isnull", False)),
                        fields=["transaction_id"],
                        name="commit_log_transaction",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("message_id", "segment_id"), name="commit_log_message_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Topic",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name", store.db.columns.CText(unique=True)),
                ("queues", models.IntegerField()),
                ("reserved_hours", models.IntegerField(null=True)),
                ("permission", models.TextField(default="rw")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "topic",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("queues__gte", 1)), name="topic_has_a_queue"),
                    models.CheckConstraint(
                        condition=models.Q(("permission__in", ("rw", "r", "w"))), name="topic_permission_known"
                    ),
                ],
            },
        ),
        migrations.RunSQL(SYSTEM_TOPICS, migrations.RunSQL.noop),
    ]
