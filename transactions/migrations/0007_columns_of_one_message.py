"""One message of a transaction lies in columns: arrays of one element took 210 bytes of WAL more of each transaction.

No row is written: rows from before keep their arrays, and are read as those of several messages are. The processes of
the version before do not read what this one writes: stop them first.
"""

import django.contrib.postgres.fields
from django.db import migrations, models

ARRAYS = {
    "log_offsets": models.BigIntegerField(),
    "message_ids": models.UUIDField(),
    "topic_ids": models.IntegerField(),
    "queue_ids": models.IntegerField(),
}
# In the order in which they take the least room behind the columns that there are.
COLUMNS = {
    "halfmessage": {
        "topic_id": models.IntegerField(null=True),
        "log_offset": models.BigIntegerField(null=True),
        "message_id": models.UUIDField(null=True),
        "queue_id": models.IntegerField(null=True),
        "tags_code": models.BigIntegerField(null=True),
    },
    "operation": {
        "topic_id": models.IntegerField(null=True),
        "log_offset": models.BigIntegerField(null=True),
        "queue_offset": models.BigIntegerField(null=True),
        "message_id": models.UUIDField(null=True),
        "queue_id": models.IntegerField(null=True),
    },
}


def array(element: models.Field) -> models.Field:
    return django.contrib.postgres.fields.ArrayField(base_field=element, null=True, size=None)


class Migration(migrations.Migration):
    dependencies = [("transactions", "0006_half_of_key")]

    operations = [
        *(
            migrations.AddField(table, name, column)
            for table, columns in COLUMNS.items()
            for name, column in columns.items()
        ),
        *(migrations.AlterField(table, name, array(element)) for table in COLUMNS for name, element in ARRAYS.items()),
        migrations.AlterField("halfmessage", "tags_codes", array(models.BigIntegerField())),
    ]
