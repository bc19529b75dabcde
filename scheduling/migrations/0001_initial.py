from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("store", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="Timer",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("due_at", models.DateTimeField()),
                ("message_id", models.UUIDField(null=True)),
                ("log_segment", models.IntegerField()),
                ("log_offset", models.BigIntegerField()),
                ("topic_id", models.IntegerField()),
                ("queue_id", models.IntegerField()),
                ("tags_code", models.BigIntegerField()),
                ("reconsume_times", models.SmallIntegerField()),
            ],
            options={
                "db_table": "timer",
                "indexes": [models.Index(fields=["due_at", "id"], name="timer_due")],
            },
        ),
    ]
