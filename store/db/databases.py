"""Django's connections to the databases of other cells than the control: an alias each, made at its first use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.db import Error, InterfaceError, InternalError, OperationalError, connections

from store.db import patience
from store.db.connections import is_read_only
from store.db.server_url import database
from store.errors import CellAway

# A cell that does not answer a change of configuration within this is away.
CELL_SECONDS = 2.0

UNTIL = "the configuration cannot change until it is back"

_making = threading.Lock()


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
            known.update(settings)
            connections[found].close_pool()  # type: ignore[attr-defined]  # the stubs know no pool
    return found


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
        raise CellAway(f"The cell {name} is away ({_reason(problem)}): {UNTIL}.") from problem
    finally:
        connections[alias].close()


def _reason(problem: Error) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__
