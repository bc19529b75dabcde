"""Finds which producer groups have due checks, among the groups whose producers a process can ask."""

import contextlib
from collections.abc import Sequence

from store.db import connections
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process import runtime
from transactions.rows import GroupToAsk

FIND_DUE_GROUPS = Statement(__file__, "find_due_groups", GroupToAsk)

# The most names in one statement: a process may be able to ask the producers of thousands of topics.
MAX_NAMES = 500


async def among(names: Sequence[str]) -> dict[str, bool]:
    """The producer groups with these names, and whether each has due checks in any cell that is not away.

    A group whose checks are paused has no due checks. Names without a group are left out.
    """
    found: dict[str, bool] = {}
    for cell in runtime.cells():
        with cell.entered(), contextlib.suppress(SystemBusy):
            for start in range(0, len(names), MAX_NAMES):
                rows = await connections.read(FIND_DUE_GROUPS, {"names": names[start : start + MAX_NAMES]})
                found |= {row.name: row.is_due or found.get(row.name, False) for row in rows}
    return found
