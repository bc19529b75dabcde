"""The tables of access: API keys, and the audit."""

from django.db import models
from django.db.models.functions import Now


class ApiKey(models.Model):
    """An API key, stored as its SHA-256; the key itself is shown once, when it is created.

    Scopes are `manage`, `metrics`, `produce:<topic pattern>`, `consume:<group pattern>` and `read:<topic pattern>`; a
    pattern may hold `*`. docs/access.md says what each allows.
    """

    name = models.TextField(unique=True)
    digest = models.BinaryField(unique=True)
    hint = models.TextField()
    scopes = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    # The key sees and uses only names of this namespace, as bare names; null: all names, as whole names.
    namespace = models.TextField(null=True, db_index=True)
    # Messages and bytes a second in each web process, and undecided transactions in the broker; null: no limit.
    messages_per_second = models.IntegerField(null=True)
    bytes_per_second = models.BigIntegerField(null=True)
    max_undecided = models.IntegerField(null=True)
    # How many requests these limits have refused in all, and when the last refusal was counted.
    refused = models.BigIntegerField(default=0, db_default=0)
    refused_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "api_key"

    def __str__(self) -> str:
        return self.name


class AuditEntry(models.Model):
    """A change, or refused change, by a console user, a key or a command; written in the transaction of the change.

    A trigger refuses UPDATE, DELETE and TRUNCATE. `result` is `done`, `unchanged` or the code of a refusal, whose
    sentence is in `detail`. `before` and `after` hold no secret. `action_id` is the id of the console action, if any.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=Now())
    author_kind = models.TextField()
    author = models.TextField()
    action = models.TextField()
    target = models.TextField()
    reason = models.TextField(null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    result = models.TextField()
    detail = models.TextField(null=True)
    request_id = models.TextField(null=True)
    action_id = models.UUIDField(null=True)

    class Meta:
        db_table = "audit_entry"
        constraints = (
            models.CheckConstraint(
                condition=models.Q(author_kind__in=("user", "key", "command")), name="audit_author_known"
            ),
        )
        indexes = (
            # The entries of one target, the latest first, for the page of a transaction or a group.
            models.Index(fields=("target", "id"), name="audit_entry_target"),
            # The results of a console action.
            models.Index(
                fields=("action_id", "id"), condition=models.Q(action_id__isnull=False), name="audit_entry_action"
            ),
        )

    def __str__(self) -> str:
        return f"{self.id} {self.action}"
