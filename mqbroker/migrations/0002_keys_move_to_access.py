"""API keys belong to the room `access`: only Django's state of their table leaves the wiring."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mqbroker", "0001_initial"), ("access", "0001_api_key")]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel(name="ApiKey")]),
    ]
