"""Kept-alive connections to one broker, used by one process only; any thread can end them."""

import socket
import time
import weakref
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util import wait_for_read

from mqbroker_client.core import exchange, forks
from mqbroker_client.core.requests import Answer, Request

#: Errors after which no complete answer can come.
FAILURES = (HTTPError, *exchange.FAILURES)

Sockets = deque[socket.socket]


class ConnectionPool:
    """Connections to the host of one URL, for many threads of one process."""

    def __init__(self, url: str, limit: int) -> None:
        self._url = urllib3.util.parse_url(url)
        self._host = self._url.netloc or ""
        self._prefix = (self._url.path or "").rstrip("/")
        self._limit = limit
        self._open()
        forks.remember(self)

    def request(self, request: Request, *, connect_seconds: float, seconds: float) -> Answer:
        """Sends the request once; the whole attempt takes at most `seconds`.

        Raises one of FAILURES if no complete answer comes.
        """
        give_up_at = time.monotonic() + seconds
        sent = exchange.written(request, self._host, self._prefix)
        idle = self._idle
        sock = self._usable(idle) or self._connect(min(connect_seconds, seconds))
        is_kept = False
        try:
            answer, is_kept = exchange.exchange(sock, request.method, sent, give_up_at)
        finally:
            # The connection is kept only if `renew` or `close` was not called meanwhile.
            if is_kept and idle is self._idle and len(idle) < self._limit:
                idle.append(sock)
            else:
                self._drop(sock)
        return answer

    def renew(self) -> None:
        """Stops using the present connections; running requests still finish on them."""
        before = self._idle
        self._rest()
        for sock in before.copy():
            self._drop(sock)

    def close(self) -> None:
        """Closes idle connections; the next request opens a new one."""
        self.renew()

    def hang_up(self) -> None:
        """Ends the running requests of other threads: each fails at once."""
        # The list is copied in one step, because other threads may connect meanwhile.
        for sock in self._opened.copy():
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def leave_to_parent(self) -> None:
        """Closes a forked child's copies of the connections, which stay open in the parent.

        If both processes read from one connection, each could get answers to the other's requests.
        """
        opened = self._opened
        self._open()
        _close(opened)

    def _connect(self, seconds: float) -> socket.socket:
        kind, port = (HTTPSConnection, 443) if self._url.scheme == "https" else (HTTPConnection, 80)
        connection = kind(self._url.host or "", self._url.port or port, timeout=seconds)
        connection.connect()
        sock: socket.socket = connection.sock
        self._opened.add(sock)
        return sock

    def _usable(self, idle: Sockets) -> socket.socket | None:
        """An idle connection that the other end has not closed; None if there is none."""
        while True:
            try:
                sock = idle.pop()
            except IndexError:
                return None
            if sock.fileno() >= 0 and not wait_for_read(sock, timeout=0):
                return sock
            self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._opened.discard(sock)
        sock.close()

    def _open(self) -> None:
        #: All open connections, idle and in use.
        self._opened: set[socket.socket] = set()
        self._rest()

    def _rest(self) -> None:
        #: Idle connections; the one used last is used first.
        self._idle: Sockets = deque()
        weakref.finalize(self, _close, self._idle)


def _close(sockets: Iterable[socket.socket]) -> None:
    for sock in sockets:
        sock.close()
