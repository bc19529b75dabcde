"""Schedules, and the firings that are decided."""

import uuid

import django.contrib.postgres.functions
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Firing",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("schedule_id", models.BigIntegerField()),
                ("name", models.TextField()),
                ("message", models.JSONField()),
                ("fire_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("taken_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "schedule_firing",
            },
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(unique=True)),
                (
                    "seed",
                    models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), default=uuid.uuid4),
                ),
                ("message", models.JSONField()),
                ("body", models.JSONField()),
                ("cron", models.TextField()),
                ("time_zone", models.TextField(db_default="UTC", default="UTC")),
                ("begins_at", models.DateTimeField(null=True)),
                ("ends_at", models.DateTimeField(null=True)),
                ("missed", models.TextField(db_default="last", default="last")),
                ("paused", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("version", models.IntegerField(db_default=0, default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("fired", models.BigIntegerField(db_default=0, default=0)),
                ("failure", models.TextField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "schedule",
                "indexes": [
                    models.Index(condition=models.Q(("paused", False)), fields=["next_at"], name="schedule_next_at")
                ],
            },
        ),
    ]
