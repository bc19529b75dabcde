"""JSON objects and texts as they are sent and received."""

import json
from typing import Any, overload

#: A JSON object, sent or received.
Document = dict[str, Any]

#: Raises ValueError or TypeError for values that JSON lacks, such as NaN.
encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def given(**fields: object) -> Document:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


@overload
def in_utf8(text: str) -> str: ...
@overload
def in_utf8(text: None) -> None: ...
def in_utf8(text: str | None) -> str | None:
    """A text that can be sent as UTF-8.

    A file name in an error message may contain bytes that are not text; they are replaced.
    """
    return None if text is None else text.encode(errors="backslashreplace").decode()
