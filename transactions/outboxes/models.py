"""The table of outboxes: the source of each, the topics that it may use, and the state of its draining."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from store.db.sealing import SealedField

# The tables of a source, which users create by docs/sql.md; they have no model.
IN_SOURCES = ("mqbroker_outbox", "mqbroker_outbox_refused", "mqbroker_outbox_state")


class Outbox(models.Model):
    """An outbox in a database of producers. `source_url` has a password, which answers and the audit do not show.

    `drained` counts rows whose message is stored, `refused` rows that were set apart. The process that drains adds them
    at most every second, so a crash may lose the last numbers.
    """

    name = models.TextField(unique=True)
    source_url = SealedField()
    # The parts of the URL without the password. Several hosts are separated by commas, each with its port if the ports
    # differ.
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
    # The time at which the last row was refused.
    refused_at = models.DateTimeField(null=True)
    drained_at = models.DateTimeField(null=True)
    waiting = models.BigIntegerField(default=0, db_default=0)
    oldest_at = models.DateTimeField(null=True)
    # Whether its table is of an earlier docs/sql.md, which costs the producers' database more.
    outdated = models.BooleanField(default=False, db_default=False)
    looked_at = models.DateTimeField(null=True)
    failure = models.TextField(null=True)
    # The first failure since the last success or change.
    failed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "outbox"

    @property
    def place(self) -> str:
        """Server, port and database in one line."""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.server}{port}/{self.database}" if self.database else str(self.server)

    def __str__(self) -> str:
        return str(self.name)


SEALED = (Outbox,)
