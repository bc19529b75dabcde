"""Where a producer group is asked about its transactions, and the secret that signs the questions."""

import base64
import os
from dataclasses import dataclass, field

# Standard Webhooks asks for 24 to 64 bytes.
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a producer group is asked, and the secret that signs the questions."""

    id: str
    url: str
    secret: str = field(repr=False)


def new_secret() -> str:
    """A secret that signs the broker's calls, `whsec_…`, for `register_endpoint` and the listener that it calls."""
    return f"whsec_{base64.b64encode(os.urandom(SECRET_BYTES)).decode()}"
