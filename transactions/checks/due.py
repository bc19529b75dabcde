"""What is due for a check, of the producer groups whose producers a process can ask."""

import contextlib
from collections.abc import Collection
from typing import NamedTuple

from store.db import connections
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process import runtime


class DueGroup(NamedTuple):
    """A producer group with checks that are due."""

    name: str


FIND_DUE_GROUPS = Statement(__file__, "find_due_groups", DueGroup)


async def among(names: Collection[str]) -> set[str]:
    """Those of some producer groups that have halves due for a check in any cell, one that is away left out.

    A group whose checks are paused is none of them.
    """
    found: set[str] = set()
    for cell in runtime.cells():
        with cell.entered(), contextlib.suppress(SystemBusy):
            found |= {row.name for row in await connections.read(FIND_DUE_GROUPS, {"names": list(names)})}
    return found
