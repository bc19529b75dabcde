from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0001_initial")]

    operations = [
        migrations.AddIndex(
            model_name="commitlog",
            index=GinIndex(
                fields=["keys"],
                condition=models.Q(("keys__isnull", False)),
                fastupdate=False,
                name="commit_log_keys",
            ),
        ),
    ]
