"""Faults of a running broker: each happens as a block begins, and is healed at its end."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from random import Random

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from mqbroker.embedded.servers import postgres, valkey
from tests.broker import forks
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.running import RunningBroker
from tests.chaos import clocks
from tests.chaos.database_faults import DatabaseFaults
from tests.chaos.small_disk import SmallDisk

Fault = Callable[[], AbstractContextManager[None]]
SLOW_SECONDS = 0.1
# A process whose clock is off has to start before its clock matters.
STARTING_SECONDS = 4.0


@dataclass(frozen=True)
class Place:
    """A broker behind a proxy, on servers of its own; what is random comes from the seed."""

    broker: RunningBroker
    server: postgres.Server
    valkey: valkey.Server
    proxy: DatabaseProxy
    disk: SmallDisk | None
    random: Random

    def faults(self) -> dict[str, Fault]:
        """Every fault by its name."""
        return self._of_processes() | self._of_servers() | self._of_the_network() | self._of_clocks()

    def left_out(self) -> list[str]:
        """What this machine cannot do."""
        missing = [] if self.disk else ["a full disk, which needs the right to mount one"]
        return missing + ([] if clocks.library() else ["clocks, which need libfaketime"])

    def _of_processes(self) -> dict[str, Fault]:
        broker = self.broker
        return {
            "kill -9 of a web process": lambda: ended(self.random.choice(broker.webs), signal.SIGKILL),
            "SIGTERM of a web process": lambda: ended(self.random.choice(broker.webs), signal.SIGTERM),
            "SIGSTOP of a web process": lambda: stopped(self.random.choice(broker.webs)),
            "kill -9 of the worker": lambda: ended(broker.worker, signal.SIGKILL),
            "SIGTERM of the worker": lambda: ended(broker.worker, signal.SIGTERM),
            "SIGSTOP of the worker": lambda: stopped(broker.worker),
            "kill -9 of beat": lambda: ended(broker.beat, signal.SIGKILL),
            "SIGTERM of beat": lambda: ended(broker.beat, signal.SIGTERM),
            "SIGSTOP of beat": lambda: stopped(broker.beat),
            "two beats": self.second_beat,
        }

    def _of_servers(self) -> dict[str, Fault]:
        database = DatabaseFaults(self.server, self.random)
        found: dict[str, Fault] = {
            "kill -9 of PostgreSQL": lambda: ended_server(self.server.kill, self.server.start),
            "restart of PostgreSQL": lambda: ended_server(self.server.stop, self.server.start),
            "SIGSTOP of PostgreSQL": database.frozen,
            "kill -9 of one backend": lambda: database.backend(signal.SIGKILL),
            "SIGTERM of one backend": lambda: database.backend(signal.SIGTERM),
            "SIGSTOP of one backend": lambda: database.backend(signal.SIGSTOP),
            "rows of half messages locked": database.rows_locked,
            "a session idle in a transaction": database.idle,
            "connections exhausted": database.exhausted,
            "kill -9 of Valkey": lambda: ended_server(self.valkey.kill, self.valkey.start),
            "restart of Valkey": lambda: ended_server(self.valkey.stop, self.valkey.start),
            "SIGSTOP of Valkey": lambda: stopped(self.valkey.child),
        }
        for name, code in {"deadlocks": "40P01", "serialization failures": "40001", "locks refused": "55P03"}.items():
            found[f"{name} ({code})"] = partial(database.raising, code)
        return found | ({"a full disk": self.disk.full} if self.disk else {})

    def _of_the_network(self) -> dict[str, Fault]:
        return {
            "connections cut": lambda: done(self.proxy.cut),
            "connections reset": lambda: done(partial(self.proxy.cut, reset=True)),
            "packets swallowed": self.swallowed,
            "a slow network": self.slow,
            "replies of commits dropped": self.dropped,
        }

    def _of_clocks(self) -> dict[str, Fault]:
        if not clocks.library():
            return {}
        return {
            "a web process 2 h ahead": lambda: another_clock(self.broker.webs[0], clocks.environment("+2h")),
            "a web process 2 h behind": lambda: another_clock(self.broker.webs[1], clocks.environment("-2h")),
            "the worker 2 h ahead": lambda: another_clock(self.broker.worker, clocks.environment("+2h")),
            "the worker 2 h behind": lambda: another_clock(self.broker.worker, clocks.environment("-2h")),
        }

    @contextlib.contextmanager
    def second_beat(self) -> Iterator[None]:
        folder = self.broker.folder
        command, log = commands.beat(folder / "beat-schedule-2"), folder / "beat-2.log"
        beat = forks.ForkedChild("beat-2", command, self.broker.environment, log, ROOT)
        beat.start()
        yield
        beat.stop()

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
def ended(child: Child, number: signal.Signals) -> Iterator[None]:
    """A process that ends, and is started again."""
    child.send_to_group(number)
    child.wait(120)
    yield
    child.start()


@contextlib.contextmanager
def ended_server(end: Callable[[], None], start: Callable[[], None]) -> Iterator[None]:
    """A server that ends, and is started again."""
    end()
    yield
    start()


@contextlib.contextmanager
def stopped(child: Child) -> Iterator[None]:
    """A process that is frozen, and goes on."""
    child.send_to_group(signal.SIGSTOP)
    try:
        yield
    finally:
        child.send_to_group(signal.SIGCONT)


@contextlib.contextmanager
def another_clock(child: Child, environment: Mapping[str, str]) -> Iterator[None]:
    """A process that is started again with another clock, and then with its own."""
    usual = dict(child.environment)
    child.environment |= environment
    child.kill()
    child.start()
    time.sleep(STARTING_SECONDS)
    yield
    child.environment = usual
    child.kill()
    child.start()


@contextlib.contextmanager
def done(work: Callable[[], None]) -> Iterator[None]:
    """What is over in a moment."""
    work()
    yield
