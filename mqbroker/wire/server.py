"""The server of one process: accepts connections until a signal, then closes them and ends the process's work."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Callable

from mqbroker.wire.accepting import Accepting
from mqbroker.wire.admission import Serve
from mqbroker.wire.connections import Connections
from mqbroker.wire.room import Room

TICK_SECONDS = 1.0
# Seconds for requests that are running when the signal comes.
FINISH_SECONDS = 1.0

Lifespan = Callable[[], contextlib.AbstractAsyncContextManager[Serve]]


async def run(listening: socket.socket, lifespan: Lifespan, room: Room, leave: Callable[[], object]) -> None:
    """Serves on the socket until SIGTERM or SIGINT. The lifespan yields the function that serves a request.

    Calls `leave` when no further caller is accepted; requests of connected callers are answered after that.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with lifespan() as serve:
        connections = Connections(serve, room)
        accepting = Accepting(listening, connections)
        async with ticking(connections):
            await stop.wait()
        await accepting.close()
        leave()
        await connections.close(FINISH_SECONDS)


@contextlib.asynccontextmanager
async def ticking(connections: Connections) -> AsyncIterator[None]:
    """Within the block calls `tick` of the connections once a second."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            connections.tick(asyncio.get_running_loop().time())

    ticks = asyncio.create_task(tick(), name="tick")
    try:
        yield
    finally:
        ticks.cancel()
