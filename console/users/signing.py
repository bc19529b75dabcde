"""Signatures, for the audit, of changes by requests of the console."""

import uuid

from django.http import HttpRequest

from access.audit import Signature


def signed(request: HttpRequest, reason: str | None = None, action_id: uuid.UUID | None = None) -> Signature:
    """The signature of the signed-in user."""
    request_id = getattr(request, "scope", {}).get("request_id")
    return Signature("user", request.user.get_username(), request_id, reason, action_id)
