"""What is judged of a URL and its secret when somebody registers them."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings

from store.errors import MessageIllegal
from webhooks import signing
from webhooks.addresses import Networks, UrlIllegal, check_url, parse_networks
from webhooks.signing import SecretIllegal


@cache
def allowed_networks() -> Networks:
    """The networks that may be called although they are not public."""
    return parse_networks(",".join(settings.WEBHOOK_ALLOWED_NETWORKS))


def judge(given: Mapping[str, Any]) -> None:
    """Raises MessageIllegal for a `url` that may not be called, or a `secret` that cannot sign.

    Waits for DNS 2 s at most.
    """
    try:
        if "url" in given:
            check_url(given["url"], allowed_networks())
        if given.get("secret") is not None:
            signing.check_secret(given["secret"])
    except (UrlIllegal, SecretIllegal) as problem:
        raise MessageIllegal(str(problem)) from problem
