"""What `send` takes for a message's body: bytes, a text, or anything that is JSON."""

import json
from typing import Any


def encoded(body: object, encoder: type[json.JSONEncoder] | None = None) -> bytes:
    """The body's bytes. A value that JSON does not have raises TypeError, before anything is stored."""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    options: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return json.dumps(body, cls=encoder, **options).encode()
