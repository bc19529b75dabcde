"""Why what is kept is set apart."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mqbroker_client", "0002_inbox")]
    operations = [migrations.AddField("BarrierRow", "refused", models.TextField(null=True))]
