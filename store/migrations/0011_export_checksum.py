from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0010_fences")]

    operations = [
        migrations.AddField(
            model_name="export",
            name="checksum",
            field=models.TextField(null=True),
        ),
    ]
