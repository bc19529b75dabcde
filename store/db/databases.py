"""Django's connections to the databases of other cells than the control: an alias each, made at its first use.

What is read or written of the message path goes to the cell that the work has entered; configuration is the control's.
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

# A cell that does not answer a change of configuration within this is away.
CELL_SECONDS = 2.0

UNTIL = "the configuration cannot change until it is back"

# Tables that each cell has of its own; all others are the control's, with copies in the cells or without.
OF_EACH_CELL = frozenset(
    (
        "check_attempt",
        "commit_log",
        "consume_queue",
        "export",
        "half_message",
        "lateness",
        "nack",
        "operation",
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
    """Django's way to the database of a model; `using` goes before it."""

    def db_for_read(self, model: type[Model], **hints: object) -> str:
        """The alias of the cell that the work has entered, for a table of each cell."""
        return here() if model._meta.db_table in OF_EACH_CELL else DEFAULT_DB_ALIAS

    db_for_write = db_for_read


def here() -> str:
    """Django's alias of the cell that this work has entered, or else of the control. Raises CellAway as `alias`."""
    cell = runtime.chosen()
    return DEFAULT_DB_ALIAS if cell is None or not cell.url else alias(cell.cell, cell.name, cell.url)


def alias(key: int | str, name: str, url: str) -> str:
    """Django's alias of a cell's database; its pool is made anew where the URL is another one than before.

    `key` is the cell's id, or a word for a database that is to become one. Raises CellAway for a URL that names no
    database: it is one that this process has no key for.
    """
    found = f"cell_{key}"
    try:
        settings = database(url, f"The URL of the cell {name}")
    except ImproperlyConfigured as problem:
        raise CellAway(f"The cell {name} cannot be reached: {problem}") from None
    # No connection is kept where nothing is asked: a process has few uses of it.
    settings["OPTIONS"]["pool"].update(min_size=0, timeout=CELL_SECONDS)
    with _making:
        known = connections.databases.get(found)
        if known is None:
            # Not added to the dictionary in place: another thread may be going through it.
            connections.settings = connections.configure_settings({**connections.databases, found: settings})
        elif any(known[key] != value for key, value in settings.items()):
            connections[found].close()
            known.update(settings)
            connections[found].close_pool()  # type: ignore[attr-defined]  # the stubs know no pool
    return found


def leave(key: int) -> None:
    """Closes the idle connections to the database of a cell; it is found again by the next `alias`."""
    found = f"cell_{key}"
    with _making:
        if found in connections.databases:
            connections[found].close()
            connections[found].close_pool()  # type: ignore[attr-defined]  # the stubs know no pool


@contextmanager
def answering(alias: str, name: str) -> Iterator[str]:
    """A short block on the database of an alias; the connection is given back behind it.

    Raises CellAway, with the cell's name, where its database is away, does not answer or takes no writes.
    """
    try:
        with patience.of(CELL_SECONDS):
            yield alias
    except (OperationalError, InterfaceError, InternalError) as problem:
        if isinstance(problem, InternalError) and not is_read_only(problem):
            raise
        raise CellAway(_sentence(name, problem)) from problem
    finally:
        # Within a transaction on it the block is a part of that.
        if not connections[alias].in_atomic_block:
            connections[alias].close()


def _sentence(name: str, problem: Error) -> str:
    if is_read_only(problem):
        [fence] = [cell.fence for cell in runtime.cells() if cell.name == name] or [""]
        return fence or f"The cell {name} is read-only, which `cells list` explains: {UNTIL}."
    return f"The cell {name} is away ({' '.join(str(problem).split()) or type(problem).__name__}): {UNTIL}."
