from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0009_presence")]

    operations = [
        migrations.AddField(
            model_name="export",
            name="checksum",
            field=models.TextField(null=True),
        ),
    ]
