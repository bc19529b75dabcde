"""The table of moves: topics that go from one cell to a new one, step by step."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from store.db.sealing import SealedField


class Move(models.Model):
    """A split of a cell, or the move of a whole cell to another server; at most one runs. The control has the rows.

    prepared ─▶ fenced ─▶ replayed ─▶ promoting ─▶ promoted ─▶ divided ─▶ opened ─▶ done
        └─────────┴───────────┴──────────┴────────────┴──▶ undoing ─▶ undone

    From `divided` on the map names the new database: the remaining steps are then finished, and the move is never
    undone. A move that is `undoing` is never finished. `holder` is the run that works at the move: only the run that
    has last begun or resumed the move writes steps.
    """

    id = models.AutoField(primary_key=True)
    running = models.BooleanField(null=True, default=True, unique=True)
    source_id = models.IntegerField()
    source_name = models.TextField()
    # The new cell; equal to `source_id` when the whole cell moves.
    target_id = models.IntegerField()
    target_name = models.TextField()
    target_url = SealedField()
    homes = ArrayField(models.TextField(), default=list)
    topic_ids = ArrayField(models.IntegerField(), default=list)
    by_hand = models.BooleanField(default=False)
    step = models.TextField(default="prepared")
    holder = models.UUIDField(default=uuid.uuid4)
    # The position in the source's WAL up to which the standby must have replayed.
    position = models.TextField(default="")
    started_at = models.DateTimeField(db_default=Now())
    fenced_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    error = models.TextField(default="")

    class Meta:
        db_table = "move"

    def __str__(self) -> str:
        return f"{self.source_name} into {self.target_name}"

    @property
    def is_whole(self) -> bool:
        """Whether the whole cell moves, and keeps its id."""
        return self.target_id == self.source_id

    @property
    def pause_seconds(self) -> float | None:
        """Seconds during which the source took no writes; None until it takes writes again."""
        if self.fenced_at is None or self.opened_at is None:
            return None
        return (self.opened_at - self.fenced_at).total_seconds()
