"""In which order a group reads the queues of a topic. With a default that is a constant PostgreSQL writes no row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("delivery", "0005_dead_letter")]

    operations = [
        migrations.AddField(
            model_name="consumergroup",
            name="queue_order",
            field=models.TextField(db_default="turns", default="turns"),
        ),
    ]
