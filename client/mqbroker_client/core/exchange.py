"""One HTTP/1.1 request and its answer over a connected socket, complete before a deadline.

A client of one server needs only a part of HTTP: an HTTP library needs more time for an answer's headers than the
broker for the whole request. Answers with a Content-Length are read here; `http.client` reads all other forms.
"""

import io
import re
import socket
import time
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from typing import Any, cast

from mqbroker_client.core.requests import Answer, Request

CHUNK_BYTES = 65_536
END_OF_HEAD = b"\r\n\r\n"
#: The status lines that are parsed here. After a 1xx another answer follows, and 204 and 304 have no body.
PLAIN = re.compile(rb"HTTP/1\.1 (?!204|304)([2-5]\d\d)[ \r]")
LENGTH = re.compile(r"\d{1,18}")
#: A request line and a header value: without line breaks, which could begin another header.
LINE = re.compile(r"[!-~]+ [!-~]+")
VALUE = re.compile(r"[ -~]*")

#: The errors that mean that no complete answer came.
FAILURES = (OSError, HTTPException)


def written(request: Request, host: str, prefix: str) -> bytes:
    """The bytes of a request, headers and body together, because two sends would be two packets.

    Raises ValueError for a target or header that contains a line break or blank, with which another header could be
    added.
    """
    line = f"{request.method} {prefix}{request.target}"
    if not LINE.fullmatch(line):
        raise ValueError(f"{line!r} is no method and path: what is not ASCII in a path, and blanks, are quoted")
    parts = [f"{line} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: identity\r\n"]
    for name, value in request.headers.items():
        if not VALUE.fullmatch(value):
            raise ValueError(
                f"{value!r} is no value of the header {name}: it has other characters than ASCII's visible"
            )
        parts.append(f"{name}: {value}\r\n")
    content = request.content
    if content is None:
        return "".join([*parts, "\r\n"]).encode()
    return b"%sContent-Length: %d\r\n\r\n%s" % ("".join(parts).encode(), len(content), content)


def exchange(sock: socket.socket, method: str, sent: bytes, give_up_at: float) -> tuple[Answer, bool]:
    """Sends the bytes. Returns the answer, and whether the connection can be used again. Raises one of FAILURES."""
    _limit(sock, give_up_at)
    # A server may answer and close the connection before it has read everything, for example with 413.
    with suppress(BrokenPipeError, ConnectionResetError):
        sock.sendall(sent)
    received = _more(sock, give_up_at)
    while (end := received.find(END_OF_HEAD)) < 0 and len(received) < CHUNK_BYTES:
        received += _more(sock, give_up_at)
    plain = PLAIN.match(received) if end >= 0 and method != "HEAD" else None
    if plain is None:
        return _of_library(sock, method, received, give_up_at)
    headers = _headers(received[:end])
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or not LENGTH.fullmatch(length):
        return _of_library(sock, method, received, give_up_at)
    body = received[end + len(END_OF_HEAD) :]
    missing = int(length) - len(body)
    if missing > 0:
        body += _whole(sock, missing, give_up_at)
    # Bytes after an answer belong to no request, so the connection is not used again.
    is_kept = missing >= 0 and "close" not in headers.get("connection", "").lower()
    return Answer(int(plain[1]), headers, body[: int(length)]), is_kept


def _headers(head: bytes) -> dict[str, str]:
    """The headers by lower-case name. If a header occurs twice, the last one counts."""
    headers = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers


def _whole(sock: socket.socket, count: int, give_up_at: float) -> bytes:
    pieces = []
    while count > 0:
        pieces.append(_more(sock, give_up_at))
        count -= len(pieces[-1])
    return b"".join(pieces)


def _more(sock: socket.socket, give_up_at: float) -> bytes:
    # The time-out is set before each read, because a socket's time-out starts again with each byte that arrives.
    _limit(sock, give_up_at)
    received = sock.recv(CHUNK_BYTES)
    if not received:
        raise ConnectionResetError("the connection was closed before a whole answer came")
    return received


def _limit(sock: socket.socket, give_up_at: float) -> None:
    left = give_up_at - time.monotonic()
    if left <= 0:
        raise TimeoutError("the answer was not whole in time")
    sock.settimeout(left)


class _Rest(io.RawIOBase):
    """A stream of the bytes that were already received, followed by the rest up to the end of the connection."""

    def __init__(self, sock: socket.socket, received: bytes, give_up_at: float) -> None:
        self._sock = sock
        self._received = received
        self._give_up_at = give_up_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._received:
            _limit(self._sock, self._give_up_at)
            self._received = self._sock.recv(CHUNK_BYTES)
        count = min(len(buffer), len(self._received))
        buffer[:count], self._received = self._received[:count], self._received[count:]
        return count

    def makefile(self, mode: str) -> io.BufferedReader:
        """Stands for a socket's `makefile`, the only method of a socket that `http.client` uses."""
        return io.BufferedReader(self)


def _of_library(sock: socket.socket, method: str, received: bytes, give_up_at: float) -> tuple[Answer, bool]:
    response = HTTPResponse(cast("socket.socket", _Rest(sock, received, give_up_at)), method=method)
    response.begin()
    body = response.read()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, body), False
