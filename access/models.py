"""The tables of access: who may call."""

from django.db import models
from django.db.models.functions import Now


class ApiKey(models.Model):
    """A caller's key, kept as its SHA-256; the key itself is shown once, when it is made.

    Scopes are `manage`, `metrics`, `produce:<topic pattern>`, `consume:<group pattern>` and `read:<topic pattern>`; a
    pattern may hold `*`. docs/access.md says what each allows.
    """

    name = models.TextField(unique=True)
    digest = models.BinaryField(unique=True)
    hint = models.TextField()
    scopes = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "api_key"

    def __str__(self) -> str:
        return self.name
