from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0004_heartbeat")]

    operations = [
        migrations.AddField(
            model_name="consumequeue",
            name="due_at",
            field=models.DateTimeField(null=True),
        ),
    ]
