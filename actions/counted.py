"""A count that stopped at a limit."""

from typing import NamedTuple

COUNT_LIMIT = 100_000


class Counted(NamedTuple):
    """How many match; `more` says that counting stopped there."""

    rows: int
    more: bool = False


def to_limit(counted: int) -> Counted:
    """A count of rows that were counted to one more than COUNT_LIMIT."""
    return Counted(min(counted, COUNT_LIMIT), counted > COUNT_LIMIT)
