"""The time from which a topic takes messages."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0011_export_checksum")]
    operations = [
        migrations.AddField(model_name="topic", name="sends_from", field=models.DateTimeField(null=True)),
    ]
