"""Bodies for `send`: bytes, a text, or a value that can be written as JSON."""

import json
from typing import Any


def encoded(body: object, encoder: type[json.JSONEncoder] | None = None) -> bytes:
    """The bytes of a body. Raises TypeError, before anything is stored, for a value that JSON cannot express."""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    options: dict[str, Any] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
    return json.dumps(body, cls=encoder, **options).encode()
