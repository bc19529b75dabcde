"""Ordered groups with the default retry policy get the one that is theirs now: a second, and not the delay levels."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("delivery", "0007_fair_by")]

    operations = [
        migrations.RunSQL(
            """
            UPDATE consumer_group SET retry_policy = '{"kind": "table", "delay_seconds": [1.0]}'
            WHERE ordered AND retry_policy IN ('{"kind": "table"}', '{}')
            """,
            migrations.RunSQL.noop,
        )
    ]
