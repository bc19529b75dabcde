"""PostgreSQL servers of a test's own that begin with the broker's tables: copies of one that a run of the tests makes.

A server that is made and migrated takes seconds of CPU, a copy of its files a fraction of one.
"""

import fcntl
import os
import secrets
import tempfile
from pathlib import Path
from typing import TypeVar

from mqbroker.embedded.servers import postgres
from tests.broker.running import RunningBroker

Server = TypeVar("Server", bound=postgres.Server)

# One name for all processes of a run, which are forks of the process that imports this module. The temporary files of
# `./mq test` end with the run.
ORIGINAL = Path(tempfile.gettempdir(), f"prepared-server-{secrets.token_hex(6)}")


def started(server: Server) -> Server:
    """Starts a new server whose database has the tables and the API key of the tests."""
    server.prepare_as(original())
    server.start()
    return server


def original() -> postgres.Server:
    """The server that others are copied from: it does not run. The first process that asks makes it."""
    # PostgreSQL may run as another user, which has to pass through.
    ORIGINAL.mkdir(mode=0o711, exist_ok=True)
    with (ORIGINAL / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = postgres.Server(ORIGINAL / "server")
        if not (ORIGINAL / "made").exists():
            server.start()
            try:
                RunningBroker(ORIGINAL / "broker", server.url, os.environ["REDIS_URL"]).prepare()
            finally:
                server.stop()
            (ORIGINAL / "made").touch()
    return server
