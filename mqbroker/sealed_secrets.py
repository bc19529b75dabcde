"""The sealed secrets of this database, of endpoints and subscriptions alike: looked at before a start, and resealed."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.db.models import QuerySet

from delivery.models import Subscription
from store.db import patience
from store.db.guards import Unfit
from transactions.models import Endpoint
from webhooks import sealing

WITHOUT_KEYS = checks.Warning(
    "MQBROKER_SECRETS_KEYS is empty: a reader of the database, or of a back-up, can sign calls as the broker does.",
    hint="Set it to a random text of 32 characters or more, and keep that apart from the back-ups.",
    id="mqbroker.W001",
)


def _rows() -> Sequence[QuerySet[Any]]:
    return (Endpoint.objects.all(), Subscription.objects.all())


def reseal(*, plain_only: bool = False) -> int:
    """Seals every secret under the first key, or only those that are not sealed; returns how many it changed.

    Raises SecretUnreadable.
    """
    return sum(sealing.reseal(rows, plain_only=plain_only) for rows in _rows())


def replace_unreadable() -> int:
    """Sets new secrets in place of those that no key opens; returns how many rows it changed."""
    return sum(map(sealing.replace_unreadable, _rows()))


@patience.of(patience.REQUEST_SECONDS)
def require_readable() -> None:
    """Raises Unfit when this process cannot open the secrets of the database. One that is away now is not looked at."""
    try:
        unreadable = sum(map(sealing.unreadable, _rows()))
    except DatabaseError:
        return
    finally:
        # A connection that this thread kept would serve no other request.
        connection.close()
    if unreadable:
        raise Unfit(
            f"The secrets of {unreadable} endpoints and subscriptions are sealed under a key that is not in "
            "MQBROKER_SECRETS_KEYS: add that key to the end of the list. If it is lost, "
            "`manage.py reseal --replace-unreadable` gives each of them a new secret."
        )


@checks.register(checks.Tags.security, deploy=True)
def require_keys(**_: Any) -> list[checks.CheckMessage]:
    """What `check --deploy` says of a broker without keys."""
    return [] if settings.SECRETS_KEYS else [WITHOUT_KEYS]
