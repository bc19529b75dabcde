"""The rows that the statements of actions return."""

from typing import NamedTuple


class Taken(NamedTuple):
    """Whether this transaction alone may go on with an action."""

    taken: bool
