"""Which retries wait as timers, however many messages of producers do."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("scheduling", "0005_timer_vacuum")]

    operations = [
        migrations.AddIndex(
            model_name="timer",
            index=models.Index(
                fields=["topic_id"], name="timer_retries", condition=models.Q(("reconsume_times__gt", 0))
            ),
        ),
    ]
