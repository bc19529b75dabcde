"""The tables of cells: the list of cells, which cell a database is, and the version of the map of topics."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

from store.db.columns import CText
from store.db.sealing import SealedField


class Cell(models.Model):
    """A database with the tables of the message path, for some of the topics. The control, cell 0, has these rows.

    The URL of cell 0 is empty: its URL is in the settings. Ids of messages and receipt handles hold a cell's id in ten
    bits. The id of a removed cell is not used again. `parent_id`: the cell from which this cell was split off.
    """

    id = models.AutoField(primary_key=True)
    name = CText(unique=True)
    url = SealedField(default="")
    takes_topics = models.BooleanField(default=False)
    made_at = models.DateTimeField(db_default=Now())
    parent_id = models.IntegerField(null=True)

    class Meta:
        db_table = "cell"
        constraints = (
            models.CheckConstraint(condition=models.Q(id__gte=0, id__lt=1024), name="cell_id_has_ten_bits"),
            # The open cell: new topics go there.
            models.UniqueConstraint(
                fields=("takes_topics",), condition=models.Q(takes_topics=True), name="cell_one_is_open"
            ),
        )

    def __str__(self) -> str:
        return str(self.name)


class CellIdentity(models.Model):
    """Which cell of which installation this database is, in one row: cell 0 until the database joins another
    installation.

    Each fence raises `epoch`, and so does its end; after `fenced_until` any process may end the fence. `departed`:
    topics that have left this database for other cells; `departed_queues`: the queues of the broker's own topics that
    hold messages of departed topics, as `topic << 32 | queue`. `first_numbers`: for a cell that was split off, the
    first number that it took itself, by sequence; rows with lower numbers are copies of the parent's rows, and so are
    entries and checks from before `noted_at`. `installation` is created with the tables, and replaced when the database
    joins an installation.
    """

    only = models.BooleanField(primary_key=True, default=True, db_default=True)
    cell_id = models.IntegerField()
    epoch = models.BigIntegerField()
    installation = models.UUIDField(db_default=RandomUUID())
    fenced_until = models.DateTimeField(null=True)
    departed = ArrayField(models.IntegerField(), default=list, db_default=[])
    departed_queues = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    first_numbers = models.JSONField(default=dict, db_default={})

    class Meta:
        db_table = "cell_identity"
        constraints = (models.CheckConstraint(condition=models.Q(only=True), name="cell_identity_once"),)


class CellMap(models.Model):
    """The version of the map from topics to cells, in one row. Each change of a cell or of a topic's cell raises it."""

    only = models.BooleanField(primary_key=True, default=True, db_default=True)
    version = models.BigIntegerField()

    class Meta:
        db_table = "cell_map"
        constraints = (models.CheckConstraint(condition=models.Q(only=True), name="cell_map_once"),)
