"""PostgreSQL servers of a test's own that begin with the broker's tables: copies of one that a run of the tests makes.

A server that is made and migrated takes seconds of CPU, a copy of its files a fraction of one.
"""

import fcntl
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psycopg

from mqbroker.embedded import commands
from mqbroker.embedded.servers import postgres
from mqbroker.embedded.servers.standby import let_promote
from tests.broker import forks
from tests.broker.running import RunningBroker

Server = TypeVar("Server", bound=postgres.Server)

# One name for all processes of a run, which are forks of the process that imports this module. The temporary files of
# `./mq test` end with the run.
ORIGINALS = Path(tempfile.gettempdir(), f"prepared-servers-{secrets.token_hex(6)}")
DATABASES = ("mqbroker", "mqbroker_c1")


def copied(server: Server) -> Server:
    """Gives a new server a database with the tables and the API key of the tests."""
    server.prepare_as(_original("one cell", _fill))
    return server


def started(server: Server) -> Server:
    """Starts a new server whose database has the same."""
    copied(server).start()
    return server


def started_with_cells(server: Server) -> Server:
    """The same with a second cell, c1, where new topics go. Standbys of both may be promoted."""
    server.prepare_as(_original("two cells", _fill_with_cells))
    server.start()
    with psycopg.connect(server.url) as session:
        session.execute("UPDATE cell SET url = %s WHERE name = 'c1'", [url_in(server, DATABASES[1])])
    return server


def url_in(server: postgres.Server, database: str) -> str:
    """The URL of one of a server's databases."""
    return urlsplit(server.url)._replace(path=f"/{database}").geturl()


def _original(name: str, fill: Callable[[postgres.Server], None]) -> postgres.Server:
    """The server that others are copied from: it does not run. The first process that asks makes it."""
    # PostgreSQL may run as another user, which has to pass through.
    ORIGINALS.mkdir(mode=0o711, exist_ok=True)
    server, made = postgres.Server(ORIGINALS / name), ORIGINALS / f"{name} is made"
    with (ORIGINALS / f"{name} lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            fill(server)
            made.touch()
    return server


def _fill(server: postgres.Server) -> None:
    with _running(server) as broker:
        broker.prepare()


def _fill_with_cells(server: postgres.Server) -> None:
    with _running(copied(server)) as broker:
        for words in (("prepare", "--cells", "2"), ("cells", "open", "c1")):
            done = forks.run(commands.manage(*words), broker.environment)
            assert done.returncode == 0, done.stderr
        for database in DATABASES:
            let_promote(server, database)


@contextmanager
def _running(server: postgres.Server) -> Iterator[RunningBroker]:
    """A broker of which nothing runs, on a server that runs meanwhile."""
    server.start()
    try:
        yield RunningBroker(ORIGINALS / "broker", server.url, os.environ["REDIS_URL"])
    finally:
        server.stop()
