"""Decodes the small JSON body of a request into the shape of a call. Refusals name the error."""

from typing import TypeVar

import msgspec

from store.errors import BadRequest, MessageIllegal, wrong_fields
from store.messages import strict_json
from store.messages.strict_json import DuplicateName

Shape = TypeVar("Shape")


def decode(shape: type[Shape], body: bytes) -> Shape:
    """The body as the shape of a request.

    Raises BadRequest if the body is not JSON or has a field twice, MessageIllegal if a field is missing, unknown or of
    the wrong type.
    """
    try:
        return strict_json.decode(body, shape)
    except DuplicateName as problem:
        raise _ambiguous(problem) from problem
    except msgspec.ValidationError as problem:
        _require_json(body)
        raise MessageIllegal(wrong_fields.sentence(problem, shape, body)) from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise no_json(problem if body else "it is empty") from problem


def _require_json(body: bytes) -> None:
    """Raises BadRequest if the text is not JSON. Needed because `decode` stops at the first wrong field."""
    try:
        msgspec.json.decode(body)
        strict_json.require_distinct(body)
    except DuplicateName as problem:
        raise _ambiguous(problem) from problem
    except msgspec.ValidationError:
        return  # The text is JSON, but contains a number that no type can hold.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise no_json(problem) from problem


def _ambiguous(problem: DuplicateName) -> BadRequest:
    return BadRequest(f"The meaning of the body is not clear: {problem}.")


def no_json(problem: object) -> BadRequest:
    """The refusal of a body that is not JSON."""
    return BadRequest(f"The body is not JSON: {problem}.")
