"""A process of the product over simulated servers: its pool, its runtime, and how it opens its sessions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from store.db.connections import Reads
from store.process import runtime
from store.process.runtime import Runtime
from tests.simulated.loop.sessions import Connection
from tests.simulated.loop.sql_answers import server
from tests.simulated.loop.virtual import VirtualLoop
from tests.simulated.loop.weather import Network, Weather

# The product gives libpq this time for a connection.
CONNECT_TIMEOUT_SECONDS = 3.0


class Pool:
    """The connections for reads; each is made when none is free."""

    def __init__(self, open_: Callable[[], Any]) -> None:
        self._open = open_
        self._free: list[Connection] = []

    @contextlib.asynccontextmanager
    async def connection(self, timeout: float = 3.0) -> AsyncIterator[Connection]:
        connection = self._free.pop() if self._free else None
        if connection is None:
            try:
                async with asyncio.timeout(timeout):
                    connection = await self._open()
            except (psycopg.Error, OSError, TimeoutError):
                raise PoolTimeout("no connection within the time") from None
        try:
            yield connection
        finally:
            if not connection.closed:
                self._free.append(connection)

    async def check(self) -> None:
        """Connections that broke while they were idle are replaced."""
        self._free = [connection for connection in self._free if not connection.pgconn.is_dead]

    def close(self) -> None:
        for connection in self._free:
            connection.pgconn.finish()


class SimulatedReads(Reads):
    """The product's reads over a pool of simulated connections."""

    def __init__(self, home: Runtime, network: Network) -> None:
        super().__init__()
        self._network = network
        self.home = home
        self._simulated = Pool(self._opened)

    async def pool(self) -> Any:
        return self._simulated

    async def _opened(self) -> Connection:
        connection = await opened(self._network, "mqbroker-reads")
        try:
            await self._prepare(connection)  # type: ignore[arg-type]  # it stands for psycopg's
        except BaseException:
            connection.pgconn.finish()
            raise
        return connection

    async def close(self) -> None:
        self._simulated.close()


def _done(made: "asyncio.Future[None]") -> None:
    if not made.done():
        made.set_result(None)


async def opened(network: Network, application: str, kind: type[Connection] = Connection) -> Connection:
    """A connection that libpq would open. Raises OperationalError."""
    fault = network.weather.fault()
    if fault == "hang":
        network.hang()
    made: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if fault != "silence":
        network.later(network.weather.latency(is_step=True), partial(_done, made))
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
            await made
    except TimeoutError:
        raise psycopg.errors.ConnectionTimeout("connection timeout expired") from None
    if fault in ("cut before", "ended before", "crowded"):
        raise psycopg.OperationalError("connection refused")
    return kind(network, application)


class SimulatedRuntime(Runtime):
    """A process's runtime whose sessions lead to simulated servers, by the cell that they are opened for."""

    def __init__(self, networks: Mapping[int, Network], cell: int = 0, name: str = "c0") -> None:
        super().__init__(cell, name)
        self._networks = networks
        with self.entered():
            self._parts[Reads] = SimulatedReads(self, networks[cell])
        self.connects = self._connect

    async def _connect(self, info: str, **_: object) -> Connection:
        words = dict(word.split("=", 1) for word in info.split() if "=" in word)
        return await opened(self._networks[runtime.here().cell], words.get("application_name", ""))


def one_server(loop: VirtualLoop, faults: Sequence[str] | None = None) -> tuple[SimulatedRuntime, Network]:
    """A process over one server, with faults of its own choice."""
    weather = Weather(loop) if faults is None else Weather(loop, faults)
    network = Network(loop, server(), weather)
    return SimulatedRuntime({0: network}), network
