"""Rows in which processes note that they are alive and which groups call them."""

from django.db import models


class Heartbeat(models.Model):
    """A process of the broker, and when it last noted that it is alive. Deleted after a day."""

    process = models.TextField(primary_key=True)
    kind = models.TextField()
    beaten_at = models.DateTimeField()
    # Equal to `beaten_at`, unless the heartbeat is of a version before bundles, which does not write this column.
    bundles_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "heartbeat"


class Presence(models.Model):
    """A group that called a web process: its number of recent connections and the last call. Deleted after a day."""

    pk = models.CompositePrimaryKey("process", "role", "group_name")
    process = models.TextField()
    role = models.TextField()
    group_name = models.TextField()
    connections = models.IntegerField()
    asked_at = models.DateTimeField()

    class Meta:
        db_table = "presence"
