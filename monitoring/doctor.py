"""What is out of order, each with the reason and what mends it: `manage.py doctor`.

It looks from the outside in: the environment, the database, then what is in it. A database that does not answer hides
what is in it.
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

from monitoring import attention, health, system
from store import stats as store_stats
from store.db import disk, guards, server_settings
from store.naming import cells
from store.notices.heartbeats import AWAY_SECONDS
from store.process import runtime

# The environment's names that are no settings of the broker's processes.
OTHER_VARIABLES = frozenset(("MQBROKER_DATA_DIR", "MQBROKER_URL", "MQBROKER_API_KEY"))
PREFIX = "MQBROKER_"
RECONNECT = "Then RECONNECT on the pooler's console"
CLOCKS_SECONDS = 2.0
# A name that is less like another one is no typing error.
CLOSE = 0.85


class Finding(NamedTuple):
    """One thing that is out of order. `urgent`: it does not mend itself."""

    urgent: bool
    what: str
    why: str
    mend: str


def examine() -> list[Finding]:
    """All findings, the urgent first; empty where nothing is out of order."""
    found = [*unknown_settings(), *redis()]
    unready = list(database())
    found += unready
    if not unready:
        found += [*sessions(), *server(), *clocks(), *users(), *processes(), *away(), *within()]
    return sorted(found, key=lambda finding: not finding.urgent)


def unknown_settings() -> Iterator[Finding]:
    """Names in the environment that no setting has: a typing error leaves the default in force."""
    known = {setting.name for setting in settings.DECLARED_SETTINGS} | OTHER_VARIABLES
    for name in sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known):
        close = difflib.get_close_matches(name, known, 1, CLOSE)
        mend = f"rename it to {close[0]}, or remove it" if close else "remove it; `./mq settings` lists all"
        yield Finding(False, f"{name} is no setting", "it is in the environment, and nothing reads it", mend)


def redis() -> Iterator[Finding]:
    """Redis, that beat and workers need."""
    if warning := health.redis_warning():
        what, _, why = warning.partition(": ")
        yield Finding(True, what, why, "start it, or correct REDIS_URL")


def database() -> Iterator[Finding]:
    """Why no process can serve on this database."""
    server = settings.DATABASES["default"]
    where = f"{server['HOST']}:{server['PORT']}"
    for reason in health.reasons_not_ready():
        if "does not answer" in reason:
            why = f"no session at {where}: {reason}"
            yield Finding(True, "The database does not answer", why, "start PostgreSQL, or correct DATABASE_URL")
        elif "migrations" in reason:
            what, _, _ = reason.rpartition("; ")
            why = "the database is of an earlier version"
            yield Finding(True, f"M{what[1:]}", why, "manage.py prepare")
        else:
            mends = {guards.OFF.format(name): server_settings.AT_ONCE.format(name, "on") for name in guards.DURABLE}
            mend = mends.get(reason, "docs/operations.md")
            yield Finding(True, "The database cannot keep what it acknowledges", reason, mend)


def sessions() -> Iterator[Finding]:
    """What the sessions of this process say: read-only, without the broker's settings, or that the disk was full."""
    try:
        warnings = guards.look("mqbroker-doctor").warnings
    except psycopg.OperationalError:
        return
    for warning in warnings:
        what, _, why = warning.partition(": ")
        if warning == guards.READ_ONLY:
            mend = "let DATABASE_URL name the primary"
        else:
            why, mend = "a pooler passes none on, and the role has others by default", f"{why} {RECONNECT}"
        yield Finding(True, f"{what[0].upper()}{what[1:]}", why, mend)
    if disk.is_recent():
        yield Finding(True, "The database's disk was full", health.DISK_FULL, "make room on the database's server")


def server() -> Iterator[Finding]:
    """Settings of the servers that no session can set."""
    found = system.read()
    processes = sum(not found.is_away(process) for process in found.processes)
    with cells.leaving_out():
        wrong = cells.ask(lambda: server_settings.wrong(processes))
    for cell, of_cell in wrong.items():
        where = f" of the cell {runtime.of(cell).name}" if runtime.several else ""
        for one in of_cell:
            yield Finding(True, f"{one.what}{where}", one.why, one.mend)


def clocks() -> Iterator[Finding]:
    """The database's clock decides; one of this machine that differs makes ages in logs and charts wrong."""
    before = time.time()
    ahead = store_stats.now().timestamp() - (before + time.time()) / 2
    if abs(ahead) > CLOCKS_SECONDS:
        why = f"the database's is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        yield Finding(False, "The clocks differ", why, "run an NTP client on both machines")


def users() -> Iterator[Finding]:
    """Whether there is a user of the console."""
    if not get_user_model().objects.filter(is_active=True).exists():
        why = "there is no active user"
        yield Finding(False, "The console has no user who can sign in", why, "manage.py createsuperuser")


def processes() -> Iterator[Finding]:
    """Web processes and workers by their heartbeats."""
    found = system.read()
    here = {process.kind for process in found.processes if not found.is_away(process)}
    if "web" not in here:
        why = f"none has noted itself for {AWAY_SECONDS:g} s"
        yield Finding(True, "No web process runs", why, "manage.py web, or `./mq up`")
    if "worker" not in here and not any(process.kind == "worker" for process in found.processes):
        why = "web processes do its work, seconds later"
        yield Finding(False, "No worker was reached by a tick of beat", why, "start a worker and beat")


def away() -> Iterator[Finding]:
    """Cells that do not answer."""
    with cells.leaving_out() as missing:
        system.read()
    for cell in missing:
        why = "its topics are answered by 503 cell_away"
        yield Finding(True, f"The cell {cell} does not answer", why, "start its PostgreSQL, or see `./mq cells list`")


def within() -> Iterator[Finding]:
    """What the console's overview shows: groups, endpoints, transactions, snapshots, exports."""
    for one in attention.found(attention.read()):
        yield Finding(one.urgent, one.what, one.detail, one.mend)


def unexamined(problem: Exception) -> Sequence[Finding]:
    """The database went away in the middle of it."""
    why = f"it went away while it was examined ({type(problem).__name__})"
    return [Finding(True, "The database does not answer", why, "start PostgreSQL, or correct DATABASE_URL")]


FAILURES = (DatabaseError, psycopg.Error)
