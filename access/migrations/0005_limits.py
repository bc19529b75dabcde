"""Limits of API keys, and how often they refused a request."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("access", "0004_audit_entry")]

    operations = [
        migrations.AddField("apikey", "messages_per_second", models.IntegerField(null=True)),
        migrations.AddField("apikey", "bytes_per_second", models.BigIntegerField(null=True)),
        migrations.AddField("apikey", "max_undecided", models.IntegerField(null=True)),
        migrations.AddField("apikey", "refused", models.BigIntegerField(db_default=0, default=0)),
        migrations.AddField("apikey", "refused_at", models.DateTimeField(null=True)),
    ]
