"""Namespaces with their limits."""

from django.db import migrations, models
from django.db.models.functions import Now

from store.db.columns import CText


class Migration(migrations.Migration):
    dependencies = [("store", "0012_sends_from")]
    operations = [
        migrations.CreateModel(
            name="Namespace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", CText(unique=True)),
                ("messages_per_second", models.IntegerField(null=True)),
                ("bytes_per_second", models.BigIntegerField(null=True)),
                ("max_topics", models.IntegerField(null=True)),
                ("max_undecided", models.IntegerField(null=True)),
                ("refused", models.BigIntegerField(db_default=0, default=0)),
                ("refused_at", models.DateTimeField(null=True)),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={"db_table": "namespace"},
        ),
    ]
