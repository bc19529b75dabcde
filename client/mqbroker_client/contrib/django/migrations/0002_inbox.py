"""The inbox's table, by the client's own statement: Django 5.2 keeps a key of two columns out of the admin."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from mqbroker_client.barrier.dialects import dialect_of
from mqbroker_client.barrier.inbox.rows import STATEMENTS


def create(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in STATEMENTS[dialect_of(schema_editor.connection.vendor).name].create:
        schema_editor.execute(statement)


def drop(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute("DROP TABLE mqbroker_inbox")


class Migration(migrations.Migration):
    dependencies = [("mqbroker_client", "0001_initial")]
    operations = [migrations.RunPython(create, drop, atomic=False)]
