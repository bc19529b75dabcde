"""Validates a URL and its secret when they are registered."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from store.errors import MessageIllegal
from webhooks import signing
from webhooks.addresses import UrlIllegal, check_url
from webhooks.signing import SecretIllegal

# Bounds of what a callee is registered with.
MAX_BATCH = 1000
MAX_TIMEOUT_SECONDS = 60
MAX_CONCURRENCY = 1000


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
