"""Callers that ask and read nothing of the answer."""

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

# The kernel doubles it: what a caller takes without reading.
RECEIVED_BYTES = 4096


@contextlib.contextmanager
def stalled(url: str, request: bytes, count: int) -> Iterator[list[socket.socket]]:
    """So many connections on which a request was sent, and nothing of the answer is read; they hang up at the end."""
    parts = urlsplit(url)
    with contextlib.ExitStack() as opened:
        callers = []
        for _ in range(count):
            caller = opened.enter_context(socket.socket())
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
            caller.connect((str(parts.hostname), int(parts.port or 80)))
            caller.sendall(request)
            callers.append(caller)
        yield callers


def get(path: str, key: str | None = None) -> bytes:
    """The bytes of a GET."""
    authorization = "" if key is None else f"Authorization: Bearer {key}\r\n"
    return f"GET {path} HTTP/1.1\r\nHost: broker\r\n{authorization}\r\n".encode()
