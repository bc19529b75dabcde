from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("store", "0007_cells"),
    ]

    operations = [
        migrations.AlterField(
            model_name="cell",
            name="id",
            field=models.AutoField(primary_key=True, serialize=False),
        ),
    ]
