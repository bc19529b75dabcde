"""The tables of cells: which there are, which one a database is, and the version of the map of topics."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.functions import RandomUUID
from django.db import models
from django.db.models.functions import Now

from store.db.columns import CText
from store.db.sealing import SealedField


class Cell(models.Model):
    """A database with the tables of the message path, for some of the topics. Rows are kept by the control, cell 0.

    The URL of cell 0 is empty: it is that of the process. Ids of messages and receipt handles hold a cell's id in ten
    bits; that of a cell which was removed is not used again. `parent_id`: that which this one was split from.
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
    """Which cell this database is, of which installation: one row in each database, (0, 0) until it joins another.

    `epoch` is raised by each fence and by its end; behind `fenced_until` any process may end it. `departed` are topics
    of other cells that this database once had, and `departed_queues` queues of the broker's own topics that hold their
    messages, as `topic << 32 | queue`. `first_numbers`: of a cell that was split off, the first number of each sequence
    that is its own; rows with lower ones are copies of the parent's. `installation` is made with the tables, and taken
    over on joining.
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
    """The version of the map from topics to cells, in one row: each change of a topic's cell, or a cell, raises it."""

    only = models.BooleanField(primary_key=True, default=True, db_default=True)
    version = models.BigIntegerField()

    class Meta:
        db_table = "cell_map"
        constraints = (models.CheckConstraint(condition=models.Q(only=True), name="cell_map_once"),)
