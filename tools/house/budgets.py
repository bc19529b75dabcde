"""Budgets: the maximum number of lines of Python in each part of the product. A budget may only be lowered."""

from typing import NamedTuple

from tools.house import figures


class Budget(NamedTuple):
    """A part of the product: its folders and files, the files below them that do not count, its maximum of lines."""

    folders: tuple[str, ...]
    without: tuple[str, ...]
    lines: int


# The modules that a half message, an end, a send, a check, a release, a receive or an ack passes through. The same list
# is in docs/architecture.md.
CORE = (
    "mqbroker/wire",
    "mqbroker/api",
    "transactions/operations",
    "transactions/checks",
    "transactions/schedule.py",
    "transactions/discards.py",
    "scheduling/sending",
    "scheduling/release.py",
    "scheduling/publish.py",
    "scheduling/delays.py",
    "delivery/receive",
    "delivery/receipts",
    "delivery/retries",
    "store/commit",
    "store/messages",
    "store/notices",
    "store/db",
    "store/segments",
    "store/process",
    "store/naming",
    "store/queues.py",
    "store/rows.py",
)  # fmt: skip -- a list to read
CONTROL = "mqbroker/api/control"
CLIENT = "client/mqbroker_client"
# Each of these parts can be left out of an installation. `analytics` can too, and has a separate budget.
DOORS = ("mqbroker/rocketmq", "transactions/outboxes", "scheduling/cron", "console/sign_on")
CELLS = ("console/cells", "store/cells")
BROKER = ("mqbroker", "console", "transactions", "delivery", "scheduling", "webhooks", "access", "store")

BUDGETS = {
    "core": Budget(CORE, (CONTROL,), 22_470),
    "doors": Budget(DOORS, (), 6_400),
    "cells": Budget(CELLS, (), 2_300),
    "other broker": Budget((*BROKER, CONTROL), (*CORE, *DOORS, *CELLS), 28_000),
    "client core": Budget((f"{CLIENT}/core", f"{CLIENT}/aio", f"{CLIENT}/barrier"), (), 7_600),
    "client contrib": Budget((f"{CLIENT}/contrib",), (), 6_450),
    "analytics": Budget(("analytics",), (), 7_860),
    "tools": Budget(("tools",), ("tools/bench",), 1_656),
    "bench": Budget(("tools/bench",), (), 3_700),
    "examples": Budget(("examples",), (), 550),
}


def lines(budget: Budget) -> int:
    """The number of lines of a part, without migrations and generated files.

    A path in `without` does not count, except for a path below it that is again in `folders`.
    """
    return sum(part.lines for part in figures.written(*_tops(budget.folders)) if belongs(part.name, budget))


def belongs(path: str, budget: Budget) -> bool:
    """Whether a path belongs to the part: the longest of all names above the path is one of `folders`."""
    own = max((len(name) for name in budget.folders if _is_below(path, name)), default=0)
    others = max((len(name) for name in budget.without if _is_below(path, name)), default=0)
    return own > others


def _tops(folders: tuple[str, ...]) -> list[str]:
    return sorted({name.partition("/")[0] for name in folders})


def _is_below(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}/")


def print_all() -> None:
    """Prints a line for each part: its lines and its budget."""
    for name, budget in BUDGETS.items():
        print(f"lines of {name}: {lines(budget)} of {budget.lines}")
