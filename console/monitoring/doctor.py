"""The findings of `manage.py doctor`: each has a reason and a remedy.

The doctor examines the environment, the control's database, the other cells' databases, and then their content. Without
an answer from a database, findings about its content are missing.
"""

import difflib
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import DatabaseError

from console.cells import stats
from console.monitoring import attention, health, system
from store import stats as store_stats
from store.cells import cells as naming_cells
from store.db import databases as store_databases
from store.db import disk, guards, server_settings
from store.notices.heartbeats import AWAY_SECONDS
from store.process import runtime
from store.process.runtime import Runtime

# Names in the environment that begin like settings, but are no settings of the broker's processes.
OTHER_VARIABLES = frozenset(("MQBROKER_DATA_DIR", "MQBROKER_URL", "MQBROKER_API_KEY"))
PREFIX = "MQBROKER_"
RECONNECT = "Then RECONNECT on the pooler's console"
CLOCKS_SECONDS = 2.0
UNFIT = "The database cannot keep what it acknowledges"
MENDS = {guards.OFF.format(name): server_settings.AT_ONCE.format(name, "on") for name in guards.DURABLE}
PREPARE, PRIMARY = "manage.py prepare", "let DATABASE_URL name the primary"
# A name that is less similar to a setting's name is not taken for a typing error.
CLOSE = 0.85


class Finding(NamedTuple):
    """One finding. `urgent`: the problem does not pass by itself."""

    urgent: bool
    what: str
    why: str
    mend: str


def examine() -> list[Finding]:
    """All findings, the urgent ones first; empty when all is in order."""
    found = [*unknown_settings(), *redis()]
    unready = list(database())
    found += unready
    if not unready:
        naming_cells.learn_once()
        with naming_cells.leaving_out():
            behind = list(databases())
            found += [*behind, *full_disk(), *users(), *processes(), *states()]
            if not any(finding.mend == PREPARE for finding in behind):
                found += within()
    return sorted(found, key=lambda finding: not finding.urgent)


def unknown_settings() -> Iterator[Finding]:
    """Names in the environment that no setting has: after a typing error, the default of a setting applies."""
    known = {setting.name for setting in settings.DECLARED_SETTINGS} | OTHER_VARIABLES
    for name in sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known):
        close = difflib.get_close_matches(name, known, 1, CLOSE)
        mend = f"rename it to {close[0]}, or remove it" if close else "remove it; `./mq settings` lists all"
        yield Finding(False, f"{name} is no setting", "it is in the environment, and nothing reads it", mend)


def redis() -> Iterator[Finding]:
    """The finding about a failure of Redis, which beat and workers need."""
    if warning := health.redis_warning():
        what, _, why = warning.partition(": ")
        yield Finding(True, what, why, "start it, or correct REDIS_URL")


def database() -> Iterator[Finding]:
    """The findings that prevent any process from serving with this database."""
    server = settings.DATABASES["default"]
    where = f"{server['HOST']}:{server['PORT']}"
    for reason in health.reasons_not_ready():
        if "does not answer" in reason:
            why = f"no session at {where}: {reason}"
            yield Finding(True, "The database does not answer", why, "start PostgreSQL, or correct DATABASE_URL")
        elif "migrations" in reason:
            what, _, _ = reason.rpartition("; ")
            why = "the database is of an earlier version"
            yield Finding(True, f"M{what[1:]}", why, PREPARE)
        else:
            yield Finding(True, UNFIT, reason, MENDS.get(reason, "docs/operations.md"))


def databases() -> Iterator[Finding]:
    """The findings about each cell's database. A database that does not answer is left out."""
    found = system.read()
    running = sum(not found.is_away(process) for process in found.processes)
    for findings in naming_cells.ask(lambda: _in_cell(running)).values():
        yield from findings


def _in_cell(running: int) -> list[Finding]:
    cell = runtime.here()
    named = "" if (name := runtime.placement.label(cell)) is None else f"Cell {name}: "
    settings_of_server = [Finding(True, *one) for one in server_settings.wrong(running)]
    settings_of_server += [Finding(False, *one) for one in server_settings.small()]
    found = [*_of_server(cell), *settings_of_server, *_clocks()]
    if missing := health.missing_migrations(store_databases.here()):
        found.append(Finding(True, f"Migrations are not applied: {missing}", "it is of an earlier version", PREPARE))
    return [finding._replace(what=f"{named}{finding.what}") for finding in found]


def _of_server(cell: Runtime) -> Iterator[Finding]:
    """The findings about a server: it is a standby or read-only, it may lose acknowledged writes, or its sessions lack
    the broker's settings.
    """
    try:
        look = guards.look("mqbroker-doctor", cell.url)
    except psycopg.OperationalError:
        return
    # For the control the function `database` reports these reasons.
    for reason in look.reasons if cell.url else ():
        yield Finding(True, UNFIT, reason, MENDS.get(reason, "docs/operations.md"))
    for warning in look.warnings if not health.is_fenced(cell) else ():
        what, _, why = warning.partition(": ")
        mend = f"set the primary's URL by `cells add {cell.name} URL`" if cell.url else PRIMARY
        if warning != guards.READ_ONLY:
            why, mend = "a pooler passes none on, and the role has others by default", f"{why} {RECONNECT}"
        yield Finding(True, f"{what[0].upper()}{what[1:]}", why, mend)


def _clocks() -> Iterator[Finding]:
    """The finding that this machine's clock differs from the database's, which makes ages in logs and charts wrong."""
    before = time.time()
    ahead = store_stats.now().timestamp() - (before + time.time()) / 2
    if abs(ahead) > CLOCKS_SECONDS:
        why = f"the database's is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        yield Finding(False, "The clocks differ", why, "run an NTP client on both machines")


def full_disk() -> Iterator[Finding]:
    """The finding that a disk was full a moment ago."""
    if disk.is_recent():
        yield Finding(True, "The database's disk was full", health.DISK_FULL, "make room on the database's server")


def states() -> Iterator[Finding]:
    """Cells whose database is the wrong one, or cannot be reached by this process, or whose copies differ."""
    if not runtime.placement.several:
        return
    for cell in stats.read().cells:
        if cell.problem not in ("", stats.FENCED) and cell.name not in naming_cells.missing():
            yield Finding(True, f"The cell {cell.name} is out of order", cell.problem, "see `cells list`")


def users() -> Iterator[Finding]:
    """The finding that the console has no user."""
    if not get_user_model().objects.filter(is_active=True).exists():
        why = "there is no active user"
        yield Finding(False, "The console has no user who can sign in", why, "manage.py createsuperuser")


def processes() -> Iterator[Finding]:
    """The findings about web processes and workers, from their heartbeats."""
    found = system.read()
    here = {process.kind for process in found.processes if not found.is_away(process)}
    if "web" not in here:
        why = f"none has noted itself for {AWAY_SECONDS:g} s"
        yield Finding(True, "No web process runs", why, "manage.py web, or `./mq up`")
    if "worker" not in here and not any(process.kind == "worker" for process in found.processes):
        why = "web processes do its work, seconds later"
        yield Finding(False, "No worker was reached by a tick of beat", why, "start a worker and beat")


def within() -> Iterator[Finding]:
    """The findings of the console's overview: groups, endpoints, transactions, snapshots, exports."""
    for one in attention.found(attention.read()):
        yield Finding(one.urgent, one.what, one.detail, one.mend)


def unexamined(problem: Exception) -> Sequence[Finding]:
    """The finding that the database went away during the examination."""
    why = f"it went away while it was examined ({type(problem).__name__})"
    return [Finding(True, "The database does not answer", why, "start PostgreSQL, or correct DATABASE_URL")]


FAILURES = (DatabaseError, psycopg.Error)
