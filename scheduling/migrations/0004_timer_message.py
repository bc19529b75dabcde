from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0003_lateness")]

    operations = [
        migrations.AddIndex(
            model_name="timer",
            index=models.Index(fields=["log_offset"], name="timer_message"),
        ),
    ]
