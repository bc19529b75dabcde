"""Who is there: rows that processes note of themselves and of their callers. Nothing depends on them."""

from django.db import models


class Heartbeat(models.Model):
    """A process of the broker, and when it last noted that it is alive; forgotten after a day."""

    process = models.TextField(primary_key=True)
    kind = models.TextField()
    beaten_at = models.DateTimeField()

    class Meta:
        db_table = "heartbeat"


class Presence(models.Model):
    """A group that asked a web process: over how many connections of late, and when last; forgotten after a day."""

    pk = models.CompositePrimaryKey("process", "role", "group_name")
    process = models.TextField()
    role = models.TextField()
    group_name = models.TextField()
    connections = models.IntegerField()
    asked_at = models.DateTimeField()

    class Meta:
        db_table = "presence"
