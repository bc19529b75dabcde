"""Half messages name the API key that began them, where the key has a limit of undecided transactions."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("transactions", "0005_endpoint_answers")]

    operations = [
        migrations.AddField("halfmessage", "api_key_id", models.BigIntegerField(null=True)),
        migrations.AddIndex(
            "halfmessage",
            models.Index(
                fields=["api_key_id"],
                condition=models.Q(api_key_id__isnull=False, discarded_at__isnull=True),
                name="half_message_key",
            ),
        ),
    ]
