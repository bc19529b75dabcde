"""A heartbeat says whether its process takes deliveries in bundles. Earlier versions leave the column as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0014_first_numbers")]

    operations = [
        migrations.AddField(model_name="heartbeat", name="bundles_at", field=models.DateTimeField(null=True)),
    ]
