from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("transactions", "0001_initial"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="halfmessage",
            index=models.Index(
                condition=models.Q(("discarded_at__isnull", False)),
                fields=["discarded_at", "transaction_id"],
                name="half_message_discarded",
            ),
        ),
    ]
