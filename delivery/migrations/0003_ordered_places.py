from django.db import migrations, models

# Receipts of ordered groups are found by their keys; before, those of messages without a key had none.
NAME_NO_KEY = """
UPDATE receipt AS r SET sharding_key = ''
FROM consumer_group AS g
WHERE r.group_id = g.id AND g.ordered AND r.sharding_key IS NULL
"""
AS_BEFORE = "UPDATE receipt SET sharding_key = NULL WHERE sharding_key = ''"


class Migration(migrations.Migration):
    dependencies = [
        ("delivery", "0002_subscription"),
    ]

    operations = [
        migrations.RunSQL(NAME_NO_KEY, AS_BEFORE),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(
                condition=models.Q(("sharding_key__isnull", False), ("state", "flight")),
                fields=["group_id", "topic_id", "queue_id", "queue_offset"],
                name="receipt_ordered_flight",
            ),
        ),
        migrations.AddIndex(
            model_name="receipt",
            index=models.Index(
                condition=models.Q(("state__in", ("held", "parked"))),
                fields=["group_id", "topic_id", "queue_id", "sharding_key", "queue_offset"],
                name="receipt_waiting",
            ),
        ),
    ]
