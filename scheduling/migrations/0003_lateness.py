import django.contrib.postgres.fields
from django.db import migrations, models

from store.db.partitioned_model import CreatePartitionedModel


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0002_recall"),
    ]

    operations = [
        CreatePartitionedModel(
            name="Lateness",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "noted_at", "id", "segment_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("segment_id", models.IntegerField()),
                ("id", models.UUIDField()),
                ("noted_at", models.DateTimeField()),
                ("queue_id", models.IntegerField()),
                ("counts", django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None)),
            ],
            options={
                "db_table": "lateness",
            },
        ),
    ]
