"""Outboxes: server, port, database and user as fields of their own, and when a row was last set apart."""

from typing import Any

from django.db import migrations, models

from store.db import sealing
from store.db.sealing import SecretUnreadable
from store.errors import Refusal
from transactions.outboxes import places


def fill(apps: Any, _: object) -> None:
    """The fields of the URLs that there are. What is refused today keeps what it shows, and fails until it is set."""
    rows = apps.get_model("outboxes", "Outbox").objects
    for row in rows.all():
        try:
            shown = places.read(sealing.opened(row.source_url)).shown
        except (Refusal, SecretUnreadable):
            continue
        rows.filter(id=row.id).update(**shown)


class Migration(migrations.Migration):
    dependencies = [
        ("outboxes", "0001_outbox"),
    ]

    operations = [
        migrations.AddField(
            model_name="outbox",
            name="port",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="outbox",
            name="database",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="outbox",
            name="user",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="outbox",
            name="refused_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
