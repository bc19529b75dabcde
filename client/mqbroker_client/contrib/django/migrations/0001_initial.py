"""The barrier's table."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from mqbroker_client.barrier.dialects import dialect_of


def index_kept(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The index by which rows with messages are found. MySQL has another one, which Django has no words for."""
    schema_editor.execute(dialect_of(schema_editor.connection.vendor).index_kept)


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="BarrierRow",
            fields=[
                ("transaction_id", models.CharField(max_length=36, primary_key=True, serialize=False)),
                ("producer_group", models.CharField(max_length=255)),
                ("decision", models.CharField(max_length=8)),
                ("decided_at", models.DateTimeField()),
                ("messages", models.TextField(null=True)),
            ],
            options={
                "db_table": "mqbroker_barrier",
                "indexes": [models.Index(fields=["decided_at"], name="mqbroker_barrier_decided")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("decision__in", ["COMMIT", "ROLLBACK"])), name="mqbroker_barrier_decision"
                    )
                ],
            },
        ),
        # It goes with its table. MySQL takes no such statement in a transaction.
        migrations.RunPython(index_kept, migrations.RunPython.noop, atomic=False),
    ]
