from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="NightlyRun",
            fields=[
                ("day", models.DateField(primary_key=True, serialize=False)),
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("tries", models.IntegerField()),
                ("failures", models.IntegerField()),
                ("failure", models.TextField(null=True)),
            ],
            options={"db_table": "nightly_run"},
        ),
        migrations.CreateModel(
            name="ReportChart",
            fields=[
                ("number", models.IntegerField(primary_key=True, serialize=False)),
                ("title", models.TextField()),
                ("about", models.TextField()),
                ("stacked", models.BooleanField()),
                ("labels", models.JSONField()),
                ("series", models.JSONField()),
                ("taken_at", models.DateTimeField()),
            ],
            options={"db_table": "report_chart", "ordering": ("number",)},
        ),
    ]
