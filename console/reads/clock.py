"""The database's time: ages and due times are told by the clock that decides them."""

from datetime import datetime

from django.db.models.functions import Now

from store.models import Segment


def now() -> datetime:
    """The time of the database. Read beside a segment, because there is always one."""
    time: datetime = Segment.objects.values_list(Now(), flat=True)[:1].get()
    return time
