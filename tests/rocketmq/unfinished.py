"""A caller over plain HTTP/2 that begins sends and never ends them: it sends as much of each as the server lets it."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

from tools.bench.rocketmq import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_HEAD,
    HEADERS,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    headers,
)

RST_STREAM, INITIAL_WINDOW_SIZE = 3, 4
WINDOW_BYTES = 65_535
FRAME_BYTES = 16_384


class Connection:
    """One connection, with what its calls may still send."""

    def __init__(self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader, left: dict[int, int]) -> None:
        self._writer, self._reader = writer, reader
        # Bytes that each call has not sent.
        self.left = left
        # Bytes of the window of each call; that of the connection has the number 0.
        self._windows = dict.fromkeys([0, *left], WINDOW_BYTES)
        self.ended: set[int] = set()
        self.sent = 0

    async def run(self, until: float) -> None:
        """Sends and reads to a moment of time.monotonic(), the end of all calls, or the connection's end."""
        reading = asyncio.create_task(self._read())
        with suppress(OSError):
            while time.monotonic() < until and not reading.done() and self.ended != self.left.keys():
                if not self._send():
                    await asyncio.sleep(0.01)
                await self._writer.drain()
        reading.cancel()
        self._writer.close()

    def _send(self) -> bool:
        """A frame of each call that has room; whether there was one."""
        before = self.sent
        for call, left in self.left.items():
            size = min(left, self._windows[call], self._windows[0], FRAME_BYTES)
            if size > 0 and call not in self.ended:
                self._writer.write(frame(DATA, 0, call, bytes(size)))
                self.left[call] -= size
                self._windows[call] -= size
                self._windows[0] -= size
                self.sent += size
        return self.sent > before

    async def _read(self) -> None:
        while True:
            head = await self._reader.readexactly(FRAME_HEAD)
            payload = await self._reader.readexactly(int.from_bytes(head[:3]))
            self._take(head[3], head[4], int.from_bytes(head[5:]), payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == WINDOW_UPDATE:
            self._windows[stream] += int.from_bytes(payload)
        elif kind == SETTINGS and not flags & ACK:
            given = {int.from_bytes(payload[at : at + 2]): payload[at + 2 : at + 6] for at in range(0, len(payload), 6)}
            more = int.from_bytes(given.get(INITIAL_WINDOW_SIZE, WINDOW_BYTES.to_bytes(4))) - WINDOW_BYTES
            for call in self.left:
                self._windows[call] += more
            self._writer.write(frame(SETTINGS, ACK, 0, b""))
        elif kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM):
            self.ended.add(stream)


async def _open(address: str, caller: Mapping[str, str], calls: int, size: int, kept_back: int) -> Connection:
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(PREFACE + frame(SETTINGS, 0, 0, b""))
    streams = range(1, 2 * calls, 2)
    for stream in streams:
        writer.write(frame(HEADERS, END_HEADERS, stream, headers(**caller)))
        writer.write(frame(DATA, 0, stream, b"\x00" + size.to_bytes(4)))
    return Connection(writer, reader, dict.fromkeys(streams, size - kept_back))


async def sends(
    address: str, caller: Mapping[str, str], *, connections: int, calls: int, size: int, seconds: float
) -> list[Connection]:
    """Sends requests of `size` bytes without their last byte, `calls` over each of `connections`, until each call has
    ended, and for some seconds at most."""
    opened = [await _open(address, caller, calls, size, 1) for _ in range(connections)]
    until = time.monotonic() + seconds
    await asyncio.gather(*(connection.run(until) for connection in opened))
    return opened
