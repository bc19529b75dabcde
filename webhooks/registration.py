"""What an operator registers and changes of a callee: its URL and secret are validated, its circuit is closed."""

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

    Waits for DNS 2 s at most.
    """
    try:
        if "url" in given:
            check_url(given["url"], settings.WEBHOOK_ALLOWED_NETWORKS)
        if given.get("secret") is not None:
            signing.check_secret(given["secret"])
    except (UrlIllegal, SecretIllegal) as problem:
        raise MessageIllegal(str(problem)) from problem


class Registered(Protocol):
    """The row of a callee."""

    @property
    def secret(self) -> str: ...


def changes(registered: Registered, given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to write for a change by an operator, which is the way out of `disabled`: the circuit is closed.

    A new `secret` keeps the one before as `previous_secret`; a `secret` of None counts as not given.
    """
    found = {name: value for name, value in given.items() if not (name == "secret" and value is None)}
    if found.get("secret", registered.secret) != registered.secret:
        found.update(previous_secret=F("secret"), rotated_at=Now())
    healthy = Circuit()
    return {**found, "state": healthy.state, "failures": healthy.failures, "open_until": healthy.open_until}
