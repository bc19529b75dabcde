"""A retry queue remembers its topic's name: a topic that is deleted and made anew is one that its group has read."""

from django.db import migrations

from store.db.columns import CText


class Migration(migrations.Migration):
    dependencies = [("delivery", "0008_ordered_retry_policy"), ("store", "0001_initial")]

    operations = [
        migrations.AddField(model_name="retryqueue", name="topic_name", field=CText(null=True)),
        migrations.RunSQL(
            "UPDATE retry_queue AS q SET topic_name = t.name FROM topic AS t WHERE t.id = q.topic_id",
            migrations.RunSQL.noop,
        ),
    ]
