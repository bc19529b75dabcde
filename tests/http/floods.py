"""Loads of strangers: what a caller sends beside a body, without an end."""

import contextlib
import socket
from collections.abc import Sequence
from urllib.parse import urlsplit

from tests.broker.running import RunningBroker

PIECE_BYTES = 256 * 1024
CHUNKED = "HTTP/1.1\r\nHost: broker\r\nTransfer-Encoding: chunked\r\n\r\n"


class Flood:
    """A request, and what follows it again and again up to a size."""

    def __init__(self, path: str, statuses: Sequence[int], opening: bytes, again: bytes, size: int) -> None:
        self.statuses = statuses
        self._opening = f"POST {path} {CHUNKED}".encode() + opening
        self._piece = again * (PIECE_BYTES // len(again))
        self._pieces = size // len(self._piece)

    def __call__(self, broker: RunningBroker) -> int:
        """Sends all of it, or until the connection is closed; the status of the answer, 0 without one."""
        place = urlsplit(broker.url)
        with socket.create_connection((place.hostname, place.port), timeout=120) as caller:
            with contextlib.suppress(ConnectionError):
                caller.sendall(self._opening)
                for _ in range(self._pieces):
                    caller.sendall(self._piece)
            with contextlib.suppress(ConnectionError):
                return int(caller.recv(4096)[9:12] or 0)
        return 0


FLOODS = {
    "trailers of a form": Flood("/console/login/", (431,), b"0\r\n", b"a:b\r\n", 15_000_000),
    "one endless trailer of a form": Flood("/console/login/", (431,), b"0\r\na: ", b"b", 48_000_000),
    "trailers of a call without a key": Flood("/v1/messages", (401, 431), b"0\r\n", b"a:b\r\n", 10_000_000),
    "trailers of no call": Flood("/v1/nothing", (401, 431), b"0\r\n", b"a:b\r\n", 10_000_000),
    "an endless extension of a chunk": Flood("/console/login/", (431,), b"1;", b"x", 48_000_000),
    "extensions of chunks of one byte": Flood(
        "/console/login/", (431,), b"", b"1;%s\r\na\r\n" % (b"x" * 1000), 48_000_000
    ),
}
