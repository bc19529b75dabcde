"""Checks the identity provider's answer about a user, and signs the user in."""

from collections.abc import Mapping
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from console.sign_on import provider, subjects
from store.db import patience, sync
from store.errors import NoPermission

# Algorithms in which only the provider has the key that signs. `none` has no key; the key of an HMAC is also known to
# the client.
ALGORITHMS = ("RS256", "PS256", "ES256")
REQUIRED = ("iss", "sub", "aud", "exp", "iat", "nonce")
# The most seconds by which the provider's clock may differ from this machine's.
LEEWAY_SECONDS = 5


class SignOn(OIDCAuthenticationBackend):  # type: ignore[misc]  # the package ships no types
    """The code flow of mozilla-django-oidc, with all checks of the ID token (OpenID Connect Core 1.0, 3.1.3.7)."""

    get_settings = staticmethod(provider.setting)

    def __init__(self) -> None:
        # Django makes a backend for each request of a session, also while the provider is away: so nothing is read
        # here.
        self.UserModel = User

    def authenticate(self, request: HttpRequest, nonce: str, code_verifier: str) -> User:
        """The user for the code in the address of the request. Django calls this only with these arguments.

        Raises NoPermission for an answer that is not valid, or SystemBusy if the provider does not answer.
        """
        super().__init__()
        sync.give_connection_back()
        try:
            user: User = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        except requests.HTTPError as problem:
            raise NoPermission(
                "The identity provider does not accept the code of this sign-in: begin again."
            ) from problem
        except requests.RequestException as problem:
            raise provider.unreachable() from problem
        except (jwt.PyJWTError, SuspiciousOperation, LookupError) as problem:
            raise NoPermission(f"The ID token of the identity provider was refused: {problem}") from problem
        return user

    def verify_token(self, token: str, **kwargs: Any) -> Mapping[str, Any]:
        """The claims of an ID token. The library checks neither audience nor issuer."""
        claims: dict[str, Any] = jwt.decode(
            token,
            self.retrieve_matching_jwk(token),
            algorithms=ALGORITHMS,
            audience=settings.SIGN_ON_CLIENT_ID,
            issuer=settings.SIGN_ON_ISSUER,
            leeway=LEEWAY_SECONDS,
            options={"require": list(REQUIRED)},
        )
        if claims.get("azp", settings.SIGN_ON_CLIENT_ID) != settings.SIGN_ON_CLIENT_ID:
            raise jwt.InvalidTokenError("It was issued to another client.")
        if claims["nonce"] != kwargs["nonce"]:
            raise jwt.InvalidTokenError("It was issued for another sign-in.")
        return claims

    def get_or_create_user(self, access_token: str, id_token: str, payload: Mapping[str, Any]) -> User:
        """The user with the role that the claims give."""
        patience.current().renew()
        return subjects.signed_in(payload)
