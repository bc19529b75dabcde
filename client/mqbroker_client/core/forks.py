"""Objects that a process must not share with the processes that it forks."""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object with connections or locks that belong to one process."""

    def leave_to_parent(self) -> None:
        """Starts afresh in a forked child; the parent keeps its open connections."""


_made: "WeakSet[Forked]" = WeakSet()


def remember(made: Forked) -> None:
    """Makes the object start afresh in each forked process."""
    _made.add(made)


def _leave_to_parent() -> None:
    for made in list(_made):
        made.leave_to_parent()


if hasattr(os, "register_at_fork"):  # missing on Windows, where processes do not fork
    os.register_at_fork(after_in_child=_leave_to_parent)
