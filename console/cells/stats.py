"""The state of each cell, for `cells list` and the console."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, ProgrammingError
from django.db.models import Count

from console.cells import registry, standing
from console.cells.standing import Standing
from store import registry as topic_registry
from store.cells import copies, repairs
from store.db import health
from store.errors import CellAway
from store.models import CellIdentity, CellMap
from store.process.runtime import CONTROL
from store.rows import CellFacts

Asked = TypeVar("Asked")
Found = TypeVar("Found")

MAX_ASKED_AT_ONCE = 16
FENCED = "fenced: it takes no writes while topics leave it"


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell with its number of users' topics. `epoch` is None while the cell is away.

    `standbys` is the number of standbys of its server, `lag_bytes` the largest lag in bytes of WAL; None without a
    standby, or when the broker's role may not read it (`pg_monitor`). `per_second`: stored messages per second, if
    requested. `problem` is empty when the cell is in order.
    """

    id: int
    name: str
    is_open: bool
    topics: int
    epoch: int | None = None
    problem: str = ""
    standbys: int = 0
    lag_bytes: int | None = None
    last_number: int | None = None
    per_second: float | None = None


@dataclass(frozen=True, slots=True)
class CellStates:
    """All cells, the version of the map, and the unfinished move."""

    version: int
    cells: Sequence[CellState]
    move: Standing | None = None


def read(rate_seconds: float = 0.0) -> CellStates:
    """The cells as they are now, all read at once. A cell that does not answer within 2 s is away.

    With `rate_seconds` they are read twice, with this pause in between.
    """
    topics = dict(topic_registry.of_users().order_by().values_list("cell_id").annotate(topics=Count("*")))
    every = registry.every()
    known = [CellState(cell.id, cell.name, cell.takes_topics, topics.get(cell.id, 0)) for cell in every]
    installation = CellIdentity.objects.get().installation
    configuration = repairs.of_control(registry.COPIED) if len(every) > 1 else {}
    facts = [registry.facts(cell) for cell in every]
    states = _at_once(lambda one: _look(*one, installation, configuration), list(zip(facts, known, strict=True)))
    if rate_seconds:
        time.sleep(rate_seconds)
        later = _at_once(_last_number, facts)
        states = [_with_rate(*one, rate_seconds) for one in zip(states, later, strict=True)]
    return CellStates(CellMap.objects.get().version, states, standing.read())


def _at_once(ask: Callable[[Asked], Found], cells: Sequence[Asked]) -> list[Found]:
    """The answers of all cells. This thread itself reads the control, over its open connection."""
    ours, *others = cells
    with ThreadPoolExecutor(MAX_ASKED_AT_ONCE) as pool:
        asked = [pool.submit(ask, each) for each in others]
        return [ask(ours), *(each.result() for each in asked)]


def _look(facts: CellFacts, known: CellState, installation: UUID, configuration: repairs.Rows) -> CellState:
    """The state and the problem of a cell, read from the cell's database only."""
    try:
        with _database_of(facts) as alias:
            identity = CellIdentity.objects.using(alias).get()
            followers = health.followers(alias)
        if (identity.cell_id, identity.installation) != (facts.id, installation):
            return replace(known, problem=f"its database is another one: `cells add {facts.name} URL` sets the URL")
        differing = [] if facts.id == CONTROL else repairs.compare(facts, configuration)
    except CellAway as problem:
        return replace(known, problem=problem.detail)
    except ProgrammingError:
        return replace(known, problem="its tables are of another version: `manage.py prepare` migrates every cell")
    rows = sum(len(each.lagging) + len(each.extra) for each in differing)
    lag = f"{rows} rows of configuration differ from the control's: `cells sync {facts.name}` copies them"
    state = FENCED if identity.fenced_until is not None else lag if rows else ""
    found = replace(known, epoch=identity.epoch, problem=state, standbys=followers.standbys)
    return replace(found, lag_bytes=followers.lag_bytes, last_number=followers.last_number)


def _last_number(facts: CellFacts) -> int | None:
    try:
        with _database_of(facts) as alias:
            return health.followers(alias).last_number
    except CellAway:
        return None


def _with_rate(state: CellState, later: int | None, seconds: float) -> CellState:
    if state.last_number is None or later is None:
        return state
    return replace(state, per_second=(later - state.last_number) / seconds)


def _database_of(facts: CellFacts) -> AbstractContextManager[str]:
    return nullcontext(DEFAULT_DB_ALIAS) if facts.id == CONTROL else copies.of_cell(facts)
