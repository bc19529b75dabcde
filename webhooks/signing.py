"""Signs requests by Standard Webhooks (https://www.standardwebhooks.com), so that a server can trust a call."""

import base64
import binascii
import secrets as random_bytes
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from standardwebhooks import Webhook

PREFIX = "whsec_"
SECRET_BYTES = 32
# The bounds of a secret's length in the specification.
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64


class SecretIllegal(ValueError):
    """A secret that can't sign. The error's sentence does not contain the secret."""

    code = "message_illegal"

    def __init__(self) -> None:
        super().__init__(
            f"The secret is not {PREFIX} followed by the base64 of {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes. "
            "Leave it out to have one made."
        )


def make_secret() -> str:
    """A new secret, `whsec_…`."""
    return PREFIX + base64.b64encode(random_bytes.token_bytes(SECRET_BYTES)).decode()


def check_secret(secret: str) -> None:
    """Raises SecretIllegal for a secret that can't sign."""
    if not secret.startswith(PREFIX):
        raise SecretIllegal
    text = secret[len(PREFIX) :].rstrip("=")  # The library reads base64 with or without padding.
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SecretIllegal from error
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise SecretIllegal


def headers(webhook_id: str, payload: bytes, secrets: Sequence[str], at: datetime) -> dict[str, str]:
    """The three `webhook-*` headers of a UTF-8 payload. `at` must be UTC.

    There is one signature for each secret, so that a server can verify with the old or the new secret during a
    rotation.
    """
    text = payload.decode()
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(_webhook(secret).sign(webhook_id, at, text) for secret in secrets),
    }


# Decoded keys are cached, because decoding and checking a key costs more than signing a small payload.
@lru_cache(maxsize=4_096)
def _webhook(secret: str) -> Webhook:
    check_secret(secret)
    return Webhook(secret)
