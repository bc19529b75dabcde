"""Limits the connections of RocketMQ's clients per port and per address, with the same limits as HTTP.

grpcio's server limits the connections of a port but not of an address; the native server limits none. So this process
looks at its own sockets, and shuts down a connection beyond the limits within LOOK_SECONDS.
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

# During this time a port may accept about 2,000 connections, and one address must not get all of them.
LOOK_SECONDS = 0.25
# On Linux and macOS this folder has an entry for each file descriptor of this process.
DESCRIPTORS = "/dev/fd"


def most() -> int:
    """The maximum number of connections of one port."""
    return min(int(setting("ROCKETMQ_CONNECTIONS")), room.most_connections())


class Connections:
    """Limits the connections of some ports within the block."""

    def __init__(self, *ports: int) -> None:
        self._rooms = {port: Room(most(), settings.CONNECTIONS_PER_ADDRESS, settings.TRUSTED_PROXIES) for port in ports}
        # While the process has fewer open file descriptors than this number, no address can have too many connections.
        self._few = min(settings.CONNECTIONS_PER_ADDRESS, most() * 3 // 4)
        # The port and the address of each accepted connection, by the inode number of its socket.
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
                # The look runs in a thread, beside the event loop: it takes 8 µs for each new connection and 2 µs for
                # each known connection.
                await asyncio.to_thread(self._look, descriptors)

    def _look(self, descriptors: list[str]) -> None:
        found = dict(_sockets(descriptors))
        for number in self._known.keys() - found.keys():
            port, address = self._known.pop(number)
            self._rooms[port].give_back(address)
        # Accepts older connections first, so that newer ones beyond the limit are closed.
        for number in sorted(found.keys() - self._known.keys()):
            self._take_in(number, found[number])

    def _take_in(self, number: int, descriptor: int) -> None:
        with suppress(OSError), closing(socket.socket(fileno=os.dup(descriptor))) as connection:
            # Meanwhile the descriptor may belong to another socket; the next look finds the other socket.
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
    """The sockets among some file descriptors of this process, with their inode numbers, which are unique while they
    are open.
    """
    for descriptor in map(int, descriptors):
        with suppress(OSError):
            found = os.fstat(descriptor)
            if stat.S_ISSOCK(found.st_mode):
                yield found.st_ino, descriptor
