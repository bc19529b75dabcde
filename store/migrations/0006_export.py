from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("store", "0005_entry_due_at")]

    operations = [
        migrations.CreateModel(
            name="Export",
            fields=[
                ("target", models.TextField(primary_key=True, serialize=False)),
                ("taken_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField()),
                ("segment_id", models.IntegerField()),
                ("log_offset", models.BigIntegerField()),
                ("rows", models.JSONField()),
            ],
            options={"db_table": "export"},
        ),
        migrations.AddField(
            model_name="segment",
            name="unexported_at",
            field=models.DateTimeField(null=True),
        ),
    ]
