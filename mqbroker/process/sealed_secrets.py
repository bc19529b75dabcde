"""The encrypted secrets of this database, including URLs of cells: checks them before a start, and
encrypts them anew.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from delivery.models import Subscription
from store.cells import copies
from store.db import patience, sealing
from store.db.guards import Unfit
from store.models import Cell
from store.process import doors
from transactions.models import Endpoint
from webhooks.signing import make_secret

WITHOUT_KEYS = checks.Warning(
    "MQBROKER_SECRETS_KEYS is empty: a reader of the database, or of a back-up, can sign calls as the broker does.",
    hint="Set it to a random text of 32 characters or more, and keep that apart from the back-ups.",
    id="mqbroker.W001",
)


def _callees() -> Sequence[QuerySet[Any]]:
    return (Endpoint.objects.all(), Subscription.objects.all())


def reseal(*, plain_only: bool = False) -> int:
    """Encrypts every secret with the first key, or only secrets that are plain text.

    Returns the number of changed secrets. Also changes the copies in other cells. Raises SecretUnreadable, or CellAway
    after changing all others.
    """
    of_control = (model.objects.all() for model in (Cell, *doors.added(doors.To.SEALED)))
    changed = sum(sealing.reseal(rows, plain_only=plain_only) for rows in (*_callees(), *of_control))
    for cell in copies.others():
        with copies.of_cell(cell) as alias:
            changed += sum(sealing.reseal(rows.using(alias), plain_only=plain_only) for rows in _callees())
    return changed


def replace_unreadable() -> int:
    """Sets new secrets for endpoints and subscriptions whose secret no key can decrypt.

    Returns the number of new secrets.
    """
    return sum(map(_replace_unreadable, _callees()))


def _replace_unreadable(rows: QuerySet[Any]) -> int:
    new = {"previous_secret": None, "rotated_at": Now()}
    return sum(rows.filter(id=id_).update(secret=make_secret(), **new) for id_ in sealing.unreadable(rows))


@patience.of(patience.REQUEST_SECONDS)
def require_readable() -> None:
    """Raises Unfit when this process cannot decrypt the secrets of the database. A cell that is away is not checked."""
    try:
        unreadable = sum(len(sealing.unreadable(rows)) for rows in _callees())
        cells = sealing.unreadable(Cell.objects.all())
    except DatabaseError:
        return
    finally:
        # A connection that stays with a thread of this pool could not be used by other requests.
        connection.close()
    if unreadable:
        raise Unfit(
            f"The secrets of {unreadable} endpoints and subscriptions are sealed under a key that is not in "
            "MQBROKER_SECRETS_KEYS: add that key to the end of the list. If it is lost, "
            "`manage.py reseal --replace-unreadable` gives each of them a new secret."
        )
    if cells:
        raise Unfit(
            f"The URLs of {len(cells)} cells are sealed under a key that is not in MQBROKER_SECRETS_KEYS: add that key "
            "to the end of the list. If it is lost, `manage.py cells add NAME URL` sets the URL of a cell again."
        )


@checks.register(checks.Tags.security, deploy=True)
def require_keys(**_: Any) -> list[checks.CheckMessage]:
    """The warning of `check --deploy` for a broker without keys for its secrets."""
    return [] if settings.SECRETS_KEYS else [WITHOUT_KEYS]
