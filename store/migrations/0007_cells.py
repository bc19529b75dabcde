import django.contrib.postgres.functions
import django.db.models.functions.datetime
from django.db import migrations, models

import store.db.columns

# The database that there is: the control, which takes all topics.
FIRST_CELL = "INSERT INTO cell (id, name, url, takes_topics) VALUES (0, 'c0', '', true)"
IDENTITY = "INSERT INTO cell_identity (cell_id, epoch) VALUES (0, 0)"
MAP = "INSERT INTO cell_map (version) VALUES (0)"


class Migration(migrations.Migration):
    dependencies = [("store", "0006_export")]

    operations = [
        migrations.AddField(
            model_name="topic",
            name="cell_id",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="topic",
            name="home",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.CreateModel(
            name="Cell",
            fields=[
                ("id", models.IntegerField(primary_key=True, serialize=False)),
                ("name", store.db.columns.CText(unique=True)),
                ("url", models.TextField(default="")),
                ("takes_topics", models.BooleanField(default=False)),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "db_table": "cell",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id__gte", 0), ("id__lt", 1024)), name="cell_id_has_ten_bits"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("takes_topics", True)), fields=("takes_topics",), name="cell_one_is_open"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CellIdentity",
            fields=[
                ("only", models.BooleanField(db_default=True, default=True, primary_key=True, serialize=False)),
                ("cell_id", models.IntegerField()),
                ("epoch", models.BigIntegerField()),
                ("installation", models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID())),
            ],
            options={
                "db_table": "cell_identity",
                "constraints": [models.CheckConstraint(condition=models.Q(("only", True)), name="cell_identity_once")],
            },
        ),
        migrations.CreateModel(
            name="CellMap",
            fields=[
                ("only", models.BooleanField(db_default=True, default=True, primary_key=True, serialize=False)),
                ("version", models.BigIntegerField()),
            ],
            options={
                "db_table": "cell_map",
                "constraints": [models.CheckConstraint(condition=models.Q(("only", True)), name="cell_map_once")],
            },
        ),
        migrations.RunSQL(FIRST_CELL, migrations.RunSQL.noop),
        migrations.RunSQL(IDENTITY, migrations.RunSQL.noop),
        migrations.RunSQL(MAP, migrations.RunSQL.noop),
    ]
