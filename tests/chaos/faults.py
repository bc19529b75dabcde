"""Faults of a running broker: each happens as a block begins, and is healed at its end."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from random import Random

import psycopg

from embedded.processes.child import Child
from embedded.servers import postgres
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.running import RunningBroker

Fault = Callable[[], AbstractContextManager[None]]
# Of the 200 that the server allows.
GREEDY_CONNECTIONS = 190
SLOW_SECONDS = 0.1
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = 'mqbroker' AND application_name LIKE 'mqbroker-%'"
HOLD_ROWS = "SELECT count(*) FROM (SELECT 1 FROM half_message LIMIT 50 FOR UPDATE SKIP LOCKED) AS held"


@dataclass(frozen=True)
class Place:
    """A broker behind a proxy, on a PostgreSQL of its own; what is random comes from the seed."""

    broker: RunningBroker
    server: postgres.Server
    proxy: DatabaseProxy
    random: Random

    def faults(self) -> dict[str, Fault]:
        """Every fault by its name."""
        broker = self.broker
        return {
            "kill -9 of a web process": lambda: ended(self.random.choice(broker.webs), signal.SIGKILL),
            "SIGTERM of a web process": lambda: ended(self.random.choice(broker.webs), signal.SIGTERM),
            "SIGSTOP of a web process": lambda: stopped(self.random.choice(broker.webs)),
            "kill -9 of the worker": lambda: ended(broker.worker, signal.SIGKILL),
            "SIGSTOP of the worker": lambda: stopped(broker.worker),
            "kill -9 of beat": lambda: ended(broker.beat, signal.SIGKILL),
            "kill -9 of PostgreSQL": self.no_server,
            "kill -9 of one backend": lambda: self.backend(signal.SIGKILL),
            "SIGSTOP of one backend": lambda: self.backend(signal.SIGSTOP),
            "connections cut": lambda: done(self.proxy.cut),
            "connections reset": lambda: done(partial(self.proxy.cut, reset=True)),
            "packets swallowed": self.swallowed,
            "a slow network": self.slow,
            "replies of commits dropped": self.dropped,
            "rows of half messages locked": lambda: self.session(HOLD_ROWS),
            "a session idle in a transaction": lambda: self.session("SELECT count(*) FROM topic"),
            "connections exhausted": self.exhausted,
        }

    @contextlib.contextmanager
    def no_server(self) -> Iterator[None]:
        self.server.kill()
        yield
        self.server.start()

    @contextlib.contextmanager
    def backend(self, number: signal.Signals) -> Iterator[None]:
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            pids = [row[0] for row in connection.execute(SESSIONS)]
        pid = self.random.choice(pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        yield
        if number == signal.SIGSTOP:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def swallowed(self) -> Iterator[None]:
        self.proxy.swallow(packets=True)
        yield
        self.proxy.swallow(packets=False)

    @contextlib.contextmanager
    def slow(self) -> Iterator[None]:
        self.proxy.delay_seconds = SLOW_SECONDS
        yield
        self.proxy.delay_seconds = 0

    @contextlib.contextmanager
    def dropped(self) -> Iterator[None]:
        self.proxy.drops_commits = self.random.randint(1, 5)
        yield
        self.proxy.drops_commits = 0

    @contextlib.contextmanager
    def session(self, statement: str) -> Iterator[None]:
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

    @property
    def superuser_url(self) -> str:
        return self.server.url.replace("//mqbroker:", "//postgres:")


@contextlib.contextmanager
def ended(child: Child, number: signal.Signals) -> Iterator[None]:
    """A process that ends, and is started again."""
    child.send_to_group(number)
    child.wait(20)
    yield
    child.start()


@contextlib.contextmanager
def stopped(child: Child) -> Iterator[None]:
    """A process that is frozen, and goes on."""
    child.send_to_group(signal.SIGSTOP)
    try:
        yield
    finally:
        child.send_to_group(signal.SIGCONT)


@contextlib.contextmanager
def done(work: Callable[[], None]) -> Iterator[None]:
    """What is over in a moment."""
    work()
    yield
