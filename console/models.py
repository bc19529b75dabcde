"""The console's own table: how often a password may still be tried."""

from django.db import models
from django.db.models.functions import Now

SLOTS = 65_536


class SignInLimit(models.Model):
    """What is left of the attempts of some user names, addresses and browsers: those whose hash is this slot.

    An attempt moves `free_at` on by the time after which it comes back; a row whose `free_at` is past has all of its
    attempts. There are as many rows as slots at most, so that no guesser makes the table grow and nothing has to clear
    it.
    """

    slot = models.IntegerField(primary_key=True)
    free_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "sign_in_limit"
        constraints = (models.CheckConstraint(condition=models.Q(slot__gte=0, slot__lt=SLOTS), name="sign_in_slot"),)

    def __str__(self) -> str:
        return f"slot {self.slot}"
