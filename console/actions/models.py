"""The table of actions, with their progress."""

import uuid

from django.db import models
from django.db.models.functions import Now


class Action(models.Model):
    """A change that an operator asked for: of the `targets`, or of all that match `wanted`.

    running ──all done──▶ done
           │ ▲
           ▼ │ pause, continue          running or paused ──cancel──▶ cancelled
         paused

    Each step is done by the right of one console user: the author, or the user who last continued the action. When this
    user has lost the right, the step pauses the action, and `stopped` says why. If a step has to be repeated, `stopped`
    has the reason.

    The results are entries of the audit, each written with its change, so the row has no results of targets. `place` is
    the cursor after the last complete step; null: at the beginning.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    kind = models.TextField()
    targets = models.JSONField(null=True)
    wanted = models.JSONField(null=True)
    parameters = models.JSONField(default=dict)
    place = models.JSONField(null=True)
    state = models.TextField(default="running")
    # The number of targets, counted up to a limit when the action was created.
    total = models.IntegerField()
    author = models.TextField()
    continued_by = models.TextField(null=True)
    stopped = models.TextField(null=True)
    reason = models.TextField()
    request_id = models.TextField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "action"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(state__in=("running", "paused", "cancelled", "done")), name="action_state_known"
            ),
            models.CheckConstraint(
                condition=models.Q(targets__isnull=False, wanted__isnull=True)
                | models.Q(targets__isnull=True, wanted__isnull=False),
                name="action_has_targets",
            ),
        )
        indexes = (
            # An index for the worker, with only the few running actions.
            models.Index(fields=("created_at",), condition=models.Q(state="running"), name="action_running"),
            models.Index(fields=("-created_at", "id"), name="action_latest"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def acting(self) -> str:
        """The console user by whose right the next step is done, and who signs the step's audit entries."""
        return self.continued_by or self.author
