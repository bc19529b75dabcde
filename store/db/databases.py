"""Django's connections to the databases of other cells than the control. Each has an alias, made at its first use.

Django uses tables of the message path in the cell that the work has entered, and the configuration at the control.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, InternalError, OperationalError, connections
from django.db.models import Model

from store.db import patience
from store.db.connections import is_read_only
from store.db.server_url import database
from store.errors import CellAway
from store.process import runtime

# A cell that does not answer a change of configuration within this time counts as away.
CELL_SECONDS = 2.0

UNTIL = "the configuration cannot change until it is back"

# Tables of which each cell has its own rows. The rows of all other tables belong to the control, and cells have copies
# of some.
OF_EACH_CELL = frozenset(
    (
        "bundle",
        "check_attempt",
        "commit_log",
        "consume_queue",
        "export",
        "half_message",
        "lateness",
        "nack",
        "operation",
        "pace",
        "progress",
        "queue_floor",
        "recall",
        "receipt",
        "redrive",
        "segment",
        "timer",
        "waiting",
    )
)

_making = threading.Lock()


class Router:
    """Django's router: the database of a model, if a query does not name one by `using`."""

    def db_for_read(self, model: type[Model], **hints: object) -> str:
        """The alias of the cell that the work has entered, if each cell has its own rows of the table."""
        return here() if model._meta.db_table in OF_EACH_CELL else DEFAULT_DB_ALIAS

    db_for_write = db_for_read


def here() -> str:
    """Django's alias of the cell that this work has entered, else of the control. Raises CellAway as `alias`."""
    cell = runtime.chosen()
    return DEFAULT_DB_ALIAS if cell is None or not cell.url else alias(cell.cell, cell.name, cell.url)


def alias(key: int | str, name: str, url: str) -> str:
    """Django's alias of a cell's database. If the URL has changed, the alias gets a new pool.

    `key` is the cell's id, or a word for a database that is to become a cell. Raises CellAway for a URL that names no
    database, because this process has no key to open the sealed URL.
    """
    found = f"cell_{key}"
    try:
        settings = database(url, f"The URL of the cell {name}")
    except ImproperlyConfigured as problem:
        raise CellAway(f"The cell {name} cannot be reached: {problem}") from None
    # An unused pool keeps no connection, because a process seldom needs one.
    settings["OPTIONS"]["pool"].update(min_size=0, timeout=CELL_SECONDS)
    with _making:
        known = connections.databases.get(found)
        if known is None:
            # A new dictionary replaces the old dictionary, because another thread may be iterating over it.
            connections.settings = connections.configure_settings({**connections.databases, found: settings})
        elif any(known[key] != value for key, value in settings.items()):
            connections[found].close()
            known.update(settings)
            connections[found].close_pool()  # type: ignore[attr-defined]  # the stubs know no pool
    return found


def leave(key: int) -> None:
    """Closes the idle connections to the database of a cell. The next call of `alias` for the cell opens others."""
    found = f"cell_{key}"
    with _making:
        if found in connections.databases:
            connections[found].close()
            connections[found].close_pool()  # type: ignore[attr-defined]  # the stubs know no pool


@contextmanager
def answering(alias: str, name: str) -> Iterator[str]:
    """A short block on the database of an alias. After the block the connection goes back to the pool.

    Raises CellAway, with the cell's name, if its database is away, does not answer or takes no writes.
    """
    try:
        with patience.of(CELL_SECONDS):
            yield alias
    except (OperationalError, InterfaceError, InternalError) as problem:
        if isinstance(problem, InternalError) and not is_read_only(problem):
            raise
        raise CellAway(_sentence(name, problem)) from problem
    finally:
        # Within a transaction of this alias the connection stays with the transaction.
        if not connections[alias].in_atomic_block:
            connections[alias].close()


def _sentence(name: str, problem: Error) -> str:
    if is_read_only(problem):
        [fence] = [cell.fence for cell in runtime.cells() if cell.name == name] or [""]
        return fence or f"The cell {name} is read-only, which `cells list` explains: {UNTIL}."
    return f"The cell {name} is away ({' '.join(str(problem).split()) or type(problem).__name__}): {UNTIL}."
