"""The namespace that a key is bound to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("access", "0005_limits"), ("store", "0013_namespace")]

    operations = [
        migrations.AddField("apikey", "namespace", models.TextField(null=True, db_index=True)),
    ]
