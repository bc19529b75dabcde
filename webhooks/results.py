"""The results of an answer, `{"results": [...]}`: servers answer checks and pushes alike."""

import contextlib
from typing import TypeVar

import msgspec

from store.messages import strict_json
from store.messages.strict_json import DuplicateName

Result = TypeVar("Result")


class NoResults(ValueError):
    """The answer holds no results that can be relied on; the text ends the sentence "It answered 200, but …"."""


class _Results(msgspec.Struct):
    # Each is decoded by itself, so that a bad one spoils no other.
    results: list[msgspec.Raw]


def results_of(body: bytes, kind: type[Result]) -> list[Result]:
    """The results of an answer in their order, without those that are no `kind`.

    Raises NoResults for a body of another shape, or with a name twice in one object, which has two meanings.
    """
    try:
        given = msgspec.json.decode(body, type=_Results).results
        strict_json.require_distinct(body)
    except DuplicateName as problem:
        raise NoResults(str(problem)) from problem
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise NoResults('not with JSON {"results": [...]}') from problem
    found: list[Result] = []
    for one in given:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found.append(msgspec.json.decode(one, type=kind))
    return found
