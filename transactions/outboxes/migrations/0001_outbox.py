"""Outboxes: where each lies, and how draining it goes."""

import django.contrib.postgres.fields
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Outbox",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField(unique=True)),
                ("source_url", models.TextField()),
                ("server", models.TextField()),
                ("schema", models.TextField(db_default="public", default="public")),
                ("topics", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ("paused", models.BooleanField(db_default=False, default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("drained", models.BigIntegerField(db_default=0, default=0)),
                ("refused", models.BigIntegerField(db_default=0, default=0)),
                ("drained_at", models.DateTimeField(null=True)),
                ("waiting", models.BigIntegerField(db_default=0, default=0)),
                ("oldest_at", models.DateTimeField(null=True)),
                ("looked_at", models.DateTimeField(null=True)),
                ("failure", models.TextField(null=True)),
                ("failed_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "outbox",
            },
        ),
    ]
