"""PostgreSQL's own processes, stopped by SIGSTOP where a transaction has just come to: before its commit, or in it."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Literal

import psycopg

from mqbroker.embedded.servers import postgres
from tests.chaos.database_faults import send

# Where a session is stopped: before its entry of the audit, which is in the same transaction; or when the commit is on
# disk, and the server has not said so.
Place = Literal["before the commit", "during the commit"]
LOOK_SECONDS = 0.02
STOPPED_AT: dict[Place, str] = {
    "before the commit": "SELECT pid FROM pg_locks WHERE relation = 'audit_entry'::regclass AND NOT granted",
    "during the commit": "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
}
NO_STANDBY = "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
AS_BEFORE = "ALTER SYSTEM RESET synchronous_standby_names"


@contextlib.contextmanager
def stopping(server: postgres.Server, place: Place) -> Iterator[None]:
    """Stops each process of a session that comes to this place; they go on at the end of the block."""
    url = server.url.replace("//mqbroker:", "//postgres:")
    over, stopped = threading.Event(), set[int]()

    def stop() -> None:
        with psycopg.connect(url, autocommit=True) as watch:
            while not over.wait(LOOK_SECONDS):
                found = {pid for (pid,) in watch.execute(STOPPED_AT[place].encode())} - stopped
                send(list(found), signal.SIGSTOP)
                stopped.update(found)

    stopper = threading.Thread(target=stop)
    try:
        with psycopg.connect(url, autocommit=True) as other, held_up(other, place):
            stopper.start()
            yield
            over.set()
            stopper.join()
    finally:
        over.set()
        send(list(stopped), signal.SIGCONT)


@contextlib.contextmanager
def held_up(other: psycopg.Connection, place: Place) -> Iterator[None]:
    """Whatever writes an entry of the audit waits at this place."""
    if place == "before the commit":
        with other.transaction():
            other.execute("LOCK TABLE audit_entry IN EXCLUSIVE MODE")
            yield
        return
    for statement in (NO_STANDBY, "SELECT pg_reload_conf()"):
        other.execute(statement.encode())
    try:
        yield
    finally:
        # A commit of its own would wait, too.
        other.execute("SET synchronous_commit = local")
        for statement in (AS_BEFORE, "SELECT pg_reload_conf()"):
            other.execute(statement.encode())
