"""When an endpoint began to fail: the first failure since its last success."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("transactions", "0009_totals")]

    operations = [migrations.AddField("endpoint", "failing_since", models.DateTimeField(null=True))]
