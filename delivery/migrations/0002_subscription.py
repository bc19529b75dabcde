import django.db.models.functions.datetime
from django.db import migrations, models

import store.db.columns


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Subscription",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("name", store.db.columns.CText(unique=True)),
                ("group_name", store.db.columns.CText()),
                ("topic_name", store.db.columns.CText()),
                ("filter", models.JSONField(null=True)),
                ("url", models.TextField()),
                ("max_batch", models.IntegerField(default=1)),
                ("timeout_seconds", models.FloatField(default=10)),
                ("concurrency", models.IntegerField(default=16)),
                ("secret", models.TextField()),
                ("previous_secret", models.TextField(null=True)),
                ("rotated_at", models.DateTimeField(null=True)),
                ("paused", models.BooleanField(default=False)),
                ("state", models.TextField(default="healthy")),
                ("failures", models.IntegerField(default=0)),
                ("open_until", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("last_failure", models.TextField(null=True)),
                ("last_failure_at", models.DateTimeField(null=True)),
                ("last_success_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "subscription",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ("healthy", "open", "half_open", "disabled"))),
                        name="subscription_state_known",
                    )
                ],
            },
        ),
    ]
