"""Registration of callees by operators: validates URL and secret; a change resets the circuit to healthy."""

from collections.abc import Mapping
from typing import Any, Protocol

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from store.db import fields
from store.errors import MessageIllegal
from webhooks import signing
from webhooks.addresses import MAX_URL_CHARACTERS, UrlIllegal, check_url
from webhooks.endpoint_health import Circuit
from webhooks.signing import SecretIllegal

URL = fields.Text(
    "url", "URL", help="http or https, to a public host", needed=True, most=MAX_URL_CHARACTERS, is_long=True
)
TIMEOUT = fields.Number("timeout_seconds", "Seconds for a call", help="For the whole call", least=0.1, most=60)
CONCURRENCY = fields.Whole("concurrency", "Calls at once", help="Calls at a time", least=1, most=1000)


def validate(given: Mapping[str, Any]) -> None:
    """Raises MessageIllegal for a `url` that may not be called, or a `secret` that cannot sign.

    Waits at most 2 s for DNS.
    """
    try:
        if "url" in given:
            check_url(given["url"], settings.WEBHOOK_ALLOWED_NETWORKS)
        if given.get("secret") is not None:
            signing.check_secret(given["secret"])
    except (UrlIllegal, SecretIllegal) as problem:
        raise MessageIllegal(str(problem)) from problem


class Registered(Protocol):
    """The database row of a callee."""

    @property
    def secret(self) -> str: ...


def changes(registered: Registered, given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that an operator's change writes. The change makes the callee healthy, also when it was disabled.

    With a new `secret` the old secret becomes `previous_secret`. A `secret` of None counts as not given.
    """
    found = {name: value for name, value in given.items() if not (name == "secret" and value is None)}
    if found.get("secret", registered.secret) != registered.secret:
        found.update(previous_secret=F("secret"), rotated_at=Now())
    healthy = Circuit()
    return {**found, "state": healthy.state, "failures": healthy.failures, "open_until": healthy.open_until}
