"""The ID tokens of the provider: with the user's roles, and as wrong as a test asks for."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
from django.http import HttpRequest, HttpResponse, JsonResponse
from oauth2_provider.oauth2_validators import OAuth2Validator

# The latest ID token, and what is wrong with the next ones: claims, a key file, an algorithm or an older token.
FOLDER = Path(os.environ["PROVIDER_FOLDER"])
LATEST, FAULT = FOLDER / "latest.jwt", FOLDER / "fault.json"


class Tokens(OAuth2Validator):  # type: ignore[misc]  # the package ships no types
    """django-oauth-toolkit's tokens with the claims of this provider's users."""

    oidc_claim_scope = None

    def validate_silent_login(self, request: Any) -> bool:
        """Allows `prompt=none`, which oauthlib leaves to its user: the view answers for who is not signed in."""
        return True

    def validate_silent_authorization(self, request: Any) -> bool:
        """Allows it without a question, as the client's `skip_authorization` does."""
        return True

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        user = request.user
        roles = list(user.groups.order_by("name").values_list("name", flat=True))
        return {"email": user.email, "given_name": user.first_name, "family_name": user.last_name, "roles": roles}

    def get_id_token_dictionary(self, token: Any, token_handler: Any, request: Any) -> Any:
        claims, expires = super().get_id_token_dictionary(token, token_handler, request)
        return {**claims, **fault().get("claims", {})}, expires


def answering(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware that keeps each ID token of the provider's answers, and replaces it as a test asks for."""

    def answer(request: HttpRequest) -> HttpResponse:
        found = get_response(request)
        if request.path != "/o/token/" or found.status_code != 200:
            return found
        document = json.loads(found.content)
        LATEST.write_text(document["id_token"])
        return JsonResponse({**document, "id_token": replaced(document["id_token"])})

    return answer


def replaced(token: str) -> str:
    """The token that is answered in place of the provider's own."""
    wrong = fault()
    if "algorithm" not in wrong:
        return str(wrong.get("token", token))
    claims = jwt.decode(token, options={"verify_signature": False})
    kid = jwt.get_unverified_header(token)["kid"]
    return jwt.encode(claims, wrong["key"], wrong["algorithm"], headers={"kid": kid})


def fault() -> dict[str, Any]:
    """What a test has asked for; empty: nothing is wrong."""
    found: dict[str, Any] = json.loads(FAULT.read_text()) if FAULT.exists() else {}
    return found
