"""What a process must not share with the processes that it forks."""

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something with connections or locks of its process."""

    def leave_to_parent(self) -> None:
        """In a forked child: begin anew, and leave what was opened to the parent."""


_made: "WeakSet[Forked]" = WeakSet()


def remember(made: Forked) -> None:
    """Have it begin anew in each process that is forked."""
    _made.add(made)


def _leave_to_parent() -> None:
    for made in list(_made):
        made.leave_to_parent()


if hasattr(os, "register_at_fork"):  # not on Windows, where no process forks
    os.register_at_fork(after_in_child=_leave_to_parent)
