"""Faults within PostgreSQL: frozen, without one backend, held up by other sessions, and errors that it raises."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg

from mqbroker.embedded.servers import postgres

# Of the 200 that the server allows.
GREEDY_CONNECTIONS = 190
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = 'mqbroker' AND application_name LIKE 'mqbroker-%'"
HOLD_ROWS = "SELECT count(*) FROM (SELECT 1 FROM half_message LIMIT 50 FOR UPDATE SKIP LOCKED) AS held"
# Statements on these tables raise `storm_error.code` with its probability, while there is one.
RAISED_SHARE = 0.1
RAISES = """
CREATE TABLE storm_error (code text, share float8);
CREATE FUNCTION storm_raise() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE wanted storm_error;
BEGIN
    SELECT * INTO wanted FROM public.storm_error LIMIT 1;
    IF random() < wanted.share THEN
        RAISE EXCEPTION USING ERRCODE = wanted.code, MESSAGE = 'raised by the storm';
    END IF;
    RETURN NULL;
END $$
"""
RAISING = ("consume_queue", "commit_log", "operation", "half_message", "receipt", "bundle", "progress", "timer")
RAISER = (
    "CREATE TRIGGER storm BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH STATEMENT EXECUTE FUNCTION storm_raise()"
)


class DatabaseFaults:
    """Faults of one server."""

    def __init__(self, server: postgres.Server, random: Random) -> None:
        self.server = server
        self.random = random

    @property
    def superuser_url(self) -> str:
        return self.server.url.replace("//mqbroker:", "//postgres:")

    def prepare(self) -> None:
        """Makes what `raising` needs, in a prepared database."""
        with psycopg.connect(self.superuser_url) as connection:
            connection.execute(RAISES.encode())
            for table in RAISING:
                connection.execute(RAISER.format(table).encode())

    @contextlib.contextmanager
    def raising(self, code: str) -> Iterator[None]:
        """Every tenth statement that writes fails with this SQLSTATE."""
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            connection.execute("INSERT INTO storm_error VALUES (%s, %s)", (code, RAISED_SHARE))
        yield
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            connection.execute("DELETE FROM storm_error")

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process of the server is stopped: it says nothing, and breaks no connection."""
        pids = [self.server.pid, *children(self.server.pid)]
        send(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            send(pids, signal.SIGCONT)

    @contextlib.contextmanager
    def backend(self, number: signal.Signals) -> Iterator[None]:
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            pids = [row[0] for row in connection.execute(SESSIONS)]
        pid = [self.random.choice(pids)]
        send(pid, number)
        yield
        if number == signal.SIGSTOP:
            send(pid, signal.SIGCONT)

    def rows_locked(self) -> contextlib.AbstractContextManager[None]:
        return self._session(HOLD_ROWS)

    def idle(self) -> contextlib.AbstractContextManager[None]:
        return self._session("SELECT count(*) FROM topic")

    @contextlib.contextmanager
    def _session(self, statement: str) -> Iterator[None]:
        with psycopg.connect(self.superuser_url) as connection:
            connection.execute(statement.encode())
            yield

    @contextlib.contextmanager
    def exhausted(self) -> Iterator[None]:
        with contextlib.ExitStack() as opened:
            with contextlib.suppress(psycopg.OperationalError):
                for _ in range(GREEDY_CONNECTIONS):
                    opened.enter_context(psycopg.connect(self.server.url))
            yield


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def send(pids: list[int], number: signal.Signals) -> None:
    """Sends a signal to those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
