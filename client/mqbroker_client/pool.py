"""Kept-alive connections to one broker: private to their process, and ended from any thread."""

import socket
import time
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ReadTimeoutError

from mqbroker_client import forks
from mqbroker_client.requests import Answer, Request

CHUNK_BYTES = 65_536

#: Connections by their identity, as long as they are used.
Opened = WeakValueDictionary[int, HTTPConnection]


class ConnectionPool:
    """Connections to the host of one URL, for many threads of one process."""

    def __init__(self, url: str, limit: int) -> None:
        self._url = urllib3.util.parse_url(url)
        self._limit = limit
        self._open()
        forks.remember(self)

    def request(self, request: Request, *, connect_seconds: float, seconds: float) -> Answer:
        """One try, which ends after `seconds` in all. Raises urllib3's HTTPError when no whole answer came."""
        pool = self._pool
        give_up_at = time.monotonic() + seconds
        answer = pool.request(
            request.method,
            (self._url.path or "").rstrip("/") + request.target,
            body=request.content,
            headers=request.headers,
            timeout=urllib3.Timeout(connect=min(connect_seconds, seconds), total=seconds),
            retries=False,
            redirect=False,
            preload_content=False,
        )
        content = _read(pool, answer, give_up_at)
        return Answer(answer.status, answer.headers, content)

    def renew(self) -> None:
        """Uses none of its connections again; requests under way still end on theirs."""
        self._open()

    def close(self) -> None:
        """Closes the idle connections; the next request opens one again."""
        pool = self._pool
        self._open()
        pool.close()

    def hang_up(self) -> None:
        """Ends the requests under way in other threads: each fails at once."""
        for sock in self._sockets():
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def leave_to_parent(self) -> None:
        """In a forked child: closes the child's copies of the connections; they stay open in the parent.

        If both processes read from one connection, each may get the answers to the other's requests.
        """
        for sock in self._sockets():
            sock.close()
        if self._pool.pool is not None:
            # A thread of the parent may have held the queue's lock at the fork, and is not here to release it.
            self._pool.pool.__init__(0)  # type: ignore[misc]  # the locks of a queue are made there
        self._open()

    def _sockets(self) -> list[socket.socket]:
        # `valuerefs` copies in one step: other threads connect meanwhile.
        connections = [reference() for reference in self._opened.valuerefs()]
        # A connection without a socket was closed, and connects again at its next request.
        found = [connection.sock for connection in connections if connection is not None]
        return [sock for sock in found if sock is not None]

    def _open(self) -> None:
        kind = _SecurePool if self._url.scheme == "https" else _PlainPool
        self._opened: Opened = WeakValueDictionary()
        self._pool = kind(self._url.host or "", self._url.port, maxsize=self._limit, opened=self._opened)


class _Whole(HTTPConnection):
    """Sends the head and the body of a request at once.

    Two sends are two packets, and between them other threads of a busy process run.
    """

    _parts: list[bytes] | None = None

    def request(self, *args: Any, **options: Any) -> None:
        self._parts = []
        try:
            super().request(*args, **options)
            parts = self._parts
        finally:
            self._parts = None
        self.send(b"".join(parts))

    def send(self, data: Any) -> None:
        if self._parts is None:
            super().send(data)
        else:
            self._parts.append(data)


class _PlainConnection(_Whole):
    def __init__(self, *args: Any, opened: Opened, **options: Any) -> None:
        super().__init__(*args, **options)
        self._opened = opened

    def connect(self) -> None:
        super().connect()
        self._opened[id(self)] = self


class _SecureConnection(_Whole, HTTPSConnection):
    def __init__(self, *args: Any, opened: Opened, **options: Any) -> None:
        super().__init__(*args, **options)
        self._opened = opened

    def connect(self) -> None:
        super().connect()
        self._opened[id(self)] = self


class _PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _read(pool: urllib3.HTTPConnectionPool, answer: urllib3.BaseHTTPResponse, give_up_at: float) -> bytes:
    # In pieces: the socket's time-out starts again with every byte of an answer that trickles in.
    pieces = []
    while piece := answer.read1(CHUNK_BYTES):
        pieces.append(piece)
        if time.monotonic() > give_up_at:
            answer.close()
            raise ReadTimeoutError(pool, None, "the answer was not whole in time")
    answer.release_conn()
    return b"".join(pieces)
