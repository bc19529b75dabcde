"""Firings: those of one schedule that wait are counted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("schedules", "0001_schedules"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="firing",
            index=models.Index(fields=["schedule_id"], name="schedule_firing_of"),
        ),
    ]
