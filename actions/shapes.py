"""The shapes that kinds of actions share: what they are given, how they run, and counts that stopped at a limit."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from access.audit import Signature

Result = TypeVar("Result")

# What the form of an action holds, by field.
Parameters = Mapping[str, Any]
# The filter of an action on all that match.
Filter = Mapping[str, Any]
# What is said of each target, by target; one that does not exist is missing.
Describe = Callable[[Sequence[str], Parameters], dict[str, str]]

COUNT_LIMIT = 100_000


class Call(Protocol):
    """Runs a coroutine in the event loop of this process, and returns its result."""

    def __call__(self, work: Coroutine[Any, Any, Result], /) -> Result: ...


# Changes the targets, each with an entry by the signature.
Run = Callable[[Sequence[str], Parameters, Signature, Call], None]


class Counted(NamedTuple):
    """How many match; `more` says that counting stopped there."""

    rows: int
    more: bool = False


def to_limit(counted: int) -> Counted:
    """A count of rows that were counted to one more than COUNT_LIMIT."""
    return Counted(min(counted, COUNT_LIMIT), counted > COUNT_LIMIT)
