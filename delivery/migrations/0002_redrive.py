from django.db import migrations, models

from store.partitions import CreatePartitionedModel


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0001_initial"),
    ]

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
    ]
