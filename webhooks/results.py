"""The results in an answer, `{"results": [...]}`, the same form for checks and pushes."""

import contextlib
from typing import TypeVar

import msgspec

from store.messages import strict_json
from store.messages.strict_json import DuplicateName

Result = TypeVar("Result")


class NoResults(ValueError):
    """The answer has no readable results. The text completes the sentence "It answered 200, but …"."""


class _Results(msgspec.Struct):
    # Each result is decoded separately, so that an invalid result does not make the others unreadable.
    results: list[msgspec.Raw]


def results_of(body: bytes, kind: type[Result]) -> list[Result]:
    """The results of an answer in their order; results that are no valid `kind` are left out.

    Raises NoResults for a body of another shape, or for an object that has a name twice, which is ambiguous.
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
