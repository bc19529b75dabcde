"""The table of outboxes: where each lies, what may be sent of it, and how draining it goes."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from store.db.sealing import SealedField

# The tables of a source, which docs/sql.md makes: no model has them.
IN_SOURCES = ("mqbroker_outbox", "mqbroker_outbox_refused", "mqbroker_outbox_state")


class Outbox(models.Model):
    """An outbox in a database of producers. `source_url` holds a password: answers and the audit show its other fields.

    Drained is a row whose message is stored, refused is one that was set apart. They are added by the process that did
    it, every second at most: a crash may lose what it had not added.
    """

    name = models.TextField(unique=True)
    source_url = SealedField()
    # Of the URL. Several hosts stand between commas, each with its port where they have several ports.
    server = models.TextField()
    port = models.IntegerField(null=True)
    database = models.TextField(default="", db_default="")
    user = models.TextField(default="", db_default="")
    schema = models.TextField(default="public", db_default="public")
    topics = ArrayField(models.TextField())
    paused = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now())
    drained = models.BigIntegerField(default=0, db_default=0)
    refused = models.BigIntegerField(default=0, db_default=0)
    # When the last row was set apart.
    refused_at = models.DateTimeField(null=True)
    drained_at = models.DateTimeField(null=True)
    waiting = models.BigIntegerField(default=0, db_default=0)
    oldest_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    failure = models.TextField(null=True)
    failed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outbox"

    @property
    def place(self) -> str:
        """Server, port and database, as one line names them."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.server}{port}/{self.database}" if self.database else str(self.server)

    def __str__(self) -> str:
        return str(self.name)
