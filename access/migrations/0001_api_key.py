"""The table of API keys was made by the wiring's first migration: only Django's state of it moves here."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [("mqbroker", "0001_initial")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="ApiKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.TextField(unique=True)),
                        ("digest", models.BinaryField(unique=True)),
                        ("hint", models.TextField()),
                        ("scopes", models.JSONField()),
                        ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                        ("expires_at", models.DateTimeField(null=True)),
                    ],
                    options={"db_table": "api_key"},
                ),
            ],
        ),
    ]
