from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("scheduling", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Recall",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "queue_id", "queue_offset", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("queue_id", models.IntegerField()),
                ("queue_offset", models.BigIntegerField()),
            ],
            options={
                "db_table": "recall",
            },
        ),
    ]
