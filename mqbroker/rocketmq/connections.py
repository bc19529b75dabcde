"""Connections of RocketMQ's clients: how many a port may have, and how many of them from one address, as HTTP's.

grpcio's server bounds the connections of a port, and knows nothing of addresses; the native one bounds neither. So this
process looks at its own sockets: a connection for which there is no room is shut down within LOOK_SECONDS.
"""

import asyncio
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing, suppress

from django.conf import settings

from mqbroker.wire import room
from mqbroker.wire.room import Room
from store.process.configuration import setting

# A port takes in some 2,000 connections meanwhile, and one address may not have them all.
LOOK_SECONDS = 0.25
# Has an entry for each descriptor of this process, on Linux and macOS.
DESCRIPTORS = "/dev/fd"


def most() -> int:
    """The connections that one port may have."""
    return min(int(setting("ROCKETMQ_CONNECTIONS")), room.most_connections())


class Connections:
    """The connections of some ports, looked at within the block."""

    def __init__(self, *ports: int) -> None:
        self._rooms = {port: Room(most(), settings.CONNECTIONS_PER_ADDRESS, settings.TRUSTED_PROXIES) for port in ports}
        # With fewer descriptors than that no address has too many connections.
        self._few = min(settings.CONNECTIONS_PER_ADDRESS, most() * 3 // 4)
        # The port and the address of each connection that has a place, by the number of its socket.
        self._known: dict[int, tuple[int, str]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._looking = asyncio.create_task(self._look_forever(), name="connections")

    async def __aexit__(self, *failure: object) -> None:
        assert self._looking is not None
        self._looking.cancel()
        await asyncio.gather(self._looking, return_exceptions=True)

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            descriptors = os.listdir(DESCRIPTORS)
            if len(descriptors) > self._few or self._known:
                # 8 µs for each new connection, 2 for the others: beside the event loop.
                await asyncio.to_thread(self._look, descriptors)

    def _look(self, descriptors: list[str]) -> None:
        found = dict(_sockets(descriptors))
        for number in self._known.keys() - found.keys():
            port, address = self._known.pop(number)
            self._rooms[port].give_back(address)
        # Closes the older connections first.
        for number in sorted(found.keys() - self._known.keys()):
            self._take_in(number, found[number])

    def _take_in(self, number: int, descriptor: int) -> None:
        with suppress(OSError), closing(socket.socket(fileno=os.dup(descriptor))) as connection:
            # It may be another one by now, whose turn comes with the next look.
            if os.fstat(connection.fileno()).st_ino != number or connection.family == socket.AF_UNIX:
                return
            port = connection.getsockname()[1]
            if port not in self._rooms:
                return
            address = connection.getpeername()[0]
            if self._rooms[port].take(address):
                self._known[number] = port, address
            else:
                connection.shutdown(socket.SHUT_RDWR)


def _sockets(descriptors: list[str]) -> Iterator[tuple[int, int]]:
    """The sockets among some descriptors of this process, by their numbers, which no other socket has meanwhile."""
    for descriptor in map(int, descriptors):
        with suppress(OSError):
            found = os.fstat(descriptor)
            if stat.S_ISSOCK(found.st_mode):
                yield found.st_ino, descriptor
