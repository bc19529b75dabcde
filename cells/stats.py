"""The state of each cell, as a list and a page show it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count

from cells import registry
from store import registry as topic_registry
from store.errors import CellAway
from store.models import Cell, CellIdentity, CellMap
from store.naming import copies, repairs

MAX_ASKED_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell, and how many topics of users it has. `epoch` is None while it is away.

    `problem` is empty where there is none.
    """

    id: int
    name: str
    is_open: bool
    topics: int
    epoch: int | None
    problem: str


@dataclass(frozen=True, slots=True)
class CellStates:
    """All cells, and the version of the map from topics to them."""

    version: int
    cells: Sequence[CellState]


def read() -> CellStates:
    """The cells as they are now, all asked at once. One that does not answer within 2 s is away."""
    topics = dict(topic_registry.of_users().order_by().values_list("cell_id").annotate(topics=Count("*")))
    ours, *others = registry.every()
    control = CellIdentity.objects.get()
    configuration = repairs.of_control(registry.COPIED) if others else {}
    with ThreadPoolExecutor(MAX_ASKED_AT_ONCE) as pool:
        asked = [pool.submit(_look, cell, control.installation, configuration) for cell in others]
        looked = [(control.epoch, ""), *(each.result() for each in asked)]
    states = [
        CellState(cell.id, cell.name, cell.takes_topics, topics.get(cell.id, 0), epoch, problem)
        for cell, (epoch, problem) in zip((ours, *others), looked, strict=True)
    ]
    return CellStates(CellMap.objects.get().version, states)


def _look(cell: Cell, installation: UUID, configuration: repairs.Rows) -> tuple[int | None, str]:
    """The epoch of a cell, and what is wrong with it; from a thread that asks nothing of the control."""
    facts = registry.facts(cell)
    try:
        with copies.of_cell(facts) as alias:
            identity = CellIdentity.objects.using(alias).get()
        if (identity.cell_id, identity.installation) != (cell.id, installation):
            return None, f"its database is another one: `cells add {cell.name} URL` sets the URL"
        rows = sum(len(each.lagging) + len(each.extra) for each in repairs.compare(facts, configuration))
    except CellAway as problem:
        return None, problem.detail
    lag = f"{rows} rows of configuration differ from the control's: `cells sync {cell.name}` copies them"
    return identity.epoch, lag if rows else ""
