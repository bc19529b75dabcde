"""The identity provider: its discovery document, and the settings that mozilla-django-oidc reads."""

import time
from typing import Any

import msgspec
import requests
from django.conf import settings
from mozilla_django_oidc.utils import import_from_settings

from store.db import patience, sync
from store.errors import SystemBusy
from store.process import runtime

# The longest wait for one answer of the provider, which holds a thread of the web process.
TIMEOUT_SECONDS = 5
# The age up to which a discovery document is used.
KEPT_SECONDS = 3600


class Metadata(msgspec.Struct, frozen=True):
    """The fields of the discovery document that the console uses (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Provider:
    """The provider's metadata as this process read it last."""

    def __init__(self) -> None:
        self._read: tuple[float, Metadata] | None = None

    def metadata(self) -> Metadata:
        """The metadata, at most KEPT_SECONDS old. Raises SystemBusy if the provider gives no usable document."""
        if self._read is None or time.monotonic() - self._read[0] > KEPT_SECONDS:
            self._read = (time.monotonic(), _discovered())
        return self._read[1]


def _discovered() -> Metadata:
    sync.give_connection_back()
    try:
        address = f"{settings.SIGN_ON_ISSUER.rstrip('/')}/.well-known/openid-configuration"
        answer = requests.get(address, timeout=TIMEOUT_SECONDS)
        answer.raise_for_status()
        found = msgspec.json.decode(answer.content, type=Metadata)
    except (requests.RequestException, msgspec.MsgspecError) as problem:
        raise unreachable() from problem
    patience.current().renew()
    # Required by section 4.3: otherwise one provider could issue tokens for another issuer.
    if found.issuer != settings.SIGN_ON_ISSUER:
        raise SystemBusy(
            f"The identity provider has the issuer {found.issuer}, but MQBROKER_SIGN_ON_ISSUER is "
            f"{settings.SIGN_ON_ISSUER}: give the same text."
        )
    return found


def unreachable() -> SystemBusy:
    """The refusal when the provider does not answer."""
    return SystemBusy("The identity provider did not answer as expected: try again in some seconds.")


def metadata() -> Metadata:
    """The provider's metadata in this process. Raises SystemBusy."""
    return runtime.control(Provider).metadata()


def setting(name: str, *default: Any) -> Any:
    """The value of a setting of mozilla-django-oidc: its classes ask by `get_settings`. Raises SystemBusy."""
    fixed = {
        "OIDC_RP_CLIENT_ID": settings.SIGN_ON_CLIENT_ID,
        "OIDC_RP_CLIENT_SECRET": settings.SIGN_ON_CLIENT_SECRET,
        "OIDC_RP_SCOPES": settings.SIGN_ON_SCOPES,
        "OIDC_RP_SIGN_ALGO": "RS256",
        "OIDC_RENEW_ID_TOKEN_EXPIRY_SECONDS": settings.SIGN_ON_RENEW_SECONDS,
        "OIDC_AUTHENTICATION_CALLBACK_URL": "admin:sign_on_return",
        "OIDC_TIMEOUT": TIMEOUT_SECONDS,
        "OIDC_USE_PKCE": True,
        # The ID token has all claims that are used.
        "OIDC_OP_USER_ENDPOINT": None,
    }
    if name in fixed:
        return fixed[name]
    if name == "OIDC_OP_AUTHORIZATION_ENDPOINT":
        return metadata().authorization_endpoint
    if name == "OIDC_OP_TOKEN_ENDPOINT":
        return metadata().token_endpoint
    if name == "OIDC_OP_JWKS_ENDPOINT":
        return metadata().jwks_uri
    if name == "OIDC_TOKEN_USE_BASIC_AUTH":
        return "client_secret_post" not in metadata().token_endpoint_auth_methods_supported
    return import_from_settings(name, *default)
