"""The calls and results of tasks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mqbroker_client", "0003_refused")]
    operations = [
        migrations.CreateModel(
            name="TaskRow",
            fields=[
                ("id", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("path", models.TextField()),
                ("backend", models.CharField(max_length=255)),
                ("queue_name", models.CharField(max_length=255)),
                ("priority", models.SmallIntegerField()),
                ("run_after", models.DateTimeField(null=True)),
                ("args", models.JSONField()),
                ("kwargs", models.JSONField()),
                ("status", models.CharField(max_length=16)),
                ("enqueued_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("last_attempted_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("worker_ids", models.JSONField(default=list)),
                ("errors", models.JSONField(default=list)),
                ("return_value", models.JSONField(null=True)),
            ],
            options={
                "db_table": "mqbroker_task",
                "indexes": [models.Index(fields=["finished_at"], name="mqbroker_task_finished")],
            },
        ),
    ]
