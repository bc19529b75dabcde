"""JSON objects and texts as they come and go."""

import json
from typing import Any, overload

#: A JSON object as it comes and goes.
Document = dict[str, Any]

#: What JSON does not have, as NaN, raises ValueError or TypeError.
encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def given(**fields: object) -> Document:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


@overload
def in_utf8(text: str) -> str: ...
@overload
def in_utf8(text: None) -> None: ...
def in_utf8(text: str | None) -> str | None:
    """A text that can be sent: the name of a file, in the message of an error, may have bytes that are no text."""
    return None if text is None else text.encode(errors="backslashreplace").decode()
