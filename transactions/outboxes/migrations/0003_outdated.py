"""Outboxes: whether the table of an outbox is of an earlier version of its page."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("outboxes", "0002_places"),
    ]

    operations = [
        migrations.AddField(
            model_name="outbox",
            name="outdated",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
