"""The console's own table, which limits attempts at passwords."""

from django.db import models
from django.db.models.functions import Now

SLOTS = 65_536


class SignInLimit(models.Model):
    """The remaining attempts of the user names, addresses and browsers whose hash is this slot.

    An attempt adds to `free_at` the time after which the attempt is available again; a row whose `free_at` is past has
    all its attempts. The table has at most one row per slot, so guesses cannot make it grow, and no work has to clear
    the table.
    """

    slot = models.IntegerField(primary_key=True)
    free_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "sign_in_limit"
        constraints = (models.CheckConstraint(condition=models.Q(slot__gte=0, slot__lt=SLOTS), name="sign_in_slot"),)

    def __str__(self) -> str:
        return f"slot {self.slot}"
