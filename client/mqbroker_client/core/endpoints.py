"""The endpoint of a producer group for checks, and the secret that signs them."""

import base64
import os
from dataclasses import dataclass, field

# Standard Webhooks requires 24 to 64 bytes.
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URL at which a producer group is checked, and the secret that signs the checks."""

    id: str
    url: str
    secret: str = field(repr=False)


def new_secret() -> str:
    """A new secret that signs the broker's calls, `whsec_…`, for `register_endpoint` and for the listener at this
    endpoint.
    """
    return f"whsec_{base64.b64encode(os.urandom(SECRET_BYTES)).decode()}"
