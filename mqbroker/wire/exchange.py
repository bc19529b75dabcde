"""One HTTP request, and the way its answer goes."""

import asyncio
from collections.abc import Generator
from typing import Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from mqbroker.wire.arriving import ArrivingBody, Gone
from mqbroker.wire.heads import Headers, head_of, head_of_whole

Given = TypeVar("Given")
# Of a request: as they came.
HeaderList = list[tuple[bytes, bytes]]
# Once the process ends, what is under way has a second: so much of it for the rest of a body, then for its answer.
LAST_BODY_SECONDS = 0.6
WITHOUT_CONTENT = frozenset((204, 304))
# Content up to this number of bytes is joined to its head: one write of both is cheaper than the copy.
COPIED_BYTES = 16 * 1024


class Line(Protocol):
    """What an exchange needs of its connection."""

    @property
    def date(self) -> bytes:
        """The time now, as a header."""

    @property
    def client(self) -> tuple[str, int] | None:
        """The address of the other end."""

    @property
    def server(self) -> tuple[str, int] | None:
        """The address of this end."""

    def hold(self, size: int) -> bool:
        """Counts bytes of requests that wait for those before them; whether all connections have room for so many."""

    def write(self, data: bytes | memoryview) -> None:
        """Sends bytes, or keeps them until the socket takes them."""

    async def drained(self) -> None:
        """Returns when the bytes have left, but for a few."""

    def read_on(self) -> None:
        """Reads further bytes of a body."""

    def cut(self) -> None:
        """Ends the connection: what was sent is no whole answer."""

    def answered(self, exchange: "Exchange") -> None:
        """The answer is complete: the next request, or the end of the connection."""


class Tally(Protocol):
    """What an exchange tells of its answer."""

    def count(self, status: int, began: float) -> None:
        """The answer with this status is complete; its request began then."""


class Shows(Protocol):
    """What changes names in a request and in the JSON of its answer, which its caller writes and reads otherwise."""

    def wrap_names(self, given: Given) -> Given:
        """What was read of the body, with names as the broker has them."""

    def show_document(self, content: bytes) -> bytes:
        """The document as the caller reads it."""

    def showing_document(self, content: bytes) -> Generator[None, None, bytes]:
        """The same of a large object; rests behind each of its parts."""


class Exchange(ArrivingBody):
    """One request. Its body arrives meanwhile; its answer is sent whole, or in parts."""

    __slots__ = (
        "_chunked",
        "_line",
        "began",
        "header_list",
        "headers",
        "is_refused",
        "keep_alive",
        "method",
        "namespace",
        "query_string",
        "refused_as",
        "request_id",
        "status",
        "tally",
        "target",
        "version",
    )

    def __init__(
        self,
        line: Line,
        method: str,
        target: bytes,
        headers: HeaderList,
        version: str,
        keep_alive: bool,
        refused_as: int | None = None,
    ) -> None:
        super().__init__()
        self._line = line
        self.method = method
        self.target, _, self.query_string = target.partition(b"?")
        self.header_list = headers
        # Of a header that comes twice, the last one.
        self.headers = dict(headers)
        self.version = version
        self.keep_alive = keep_alive
        # The status of the answer to what is no request.
        self.refused_as = refused_as
        self.request_id = b""
        # New work that is not to be served: too much waits.
        self.is_refused = False
        self._chunked = False
        # What counts its answer, and since when, by the monotonic clock; None: nothing does.
        self.tally: Tally | None = None
        self.began = 0.0
        self.status = 0
        # What changes the names in it and in its answer; None: nothing does.
        self.namespace: Shows | None = None

    @property
    def path(self) -> str:
        """The path, its escapes decoded."""
        if b"%" in self.target or not self.target.isascii():
            return unquote_to_bytes(self.target).decode("utf-8", "replace")
        return self.target.decode("ascii")

    @property
    def client(self) -> tuple[str, int] | None:
        """The address of the caller, or of a proxy before it."""
        return self._line.client

    @property
    def server(self) -> tuple[str, int] | None:
        """The address that the caller has reached."""
        return self._line.server

    def cut(self) -> None:
        """Gives up an answer in parts: the caller must not take what it has for a whole one."""
        self.hang_up()
        self._line.cut()

    def finish(self) -> None:
        """The process ends: what is blocked is answered now, and the connection is not kept."""
        self.keep_alive = False
        self._end_waits()
        if not self.is_whole:
            asyncio.get_running_loop().call_later(LAST_BODY_SECONDS, self._cut)

    def answer(self, status: int, headers: Headers, content: bytes | memoryview) -> None:
        """Sends a whole answer, its head with the request's id and the length. Large content is not copied."""
        if status in WITHOUT_CONTENT:
            self.start(status, (*headers, (b"x-request-id", self.request_id)))
            self.end()
            return
        self._begin()
        date, length = self._line.date, len(content)
        head = head_of_whole(status, date, headers, self.request_id, length, keep_alive=self.keep_alive)
        if self.method == "HEAD" or not length:
            self._line.write(head)
        elif length <= COPIED_BYTES:
            self._line.write(head + content)
        else:
            self._line.write(head)
            self._line.write(content)
        if self.tally is not None:
            self.tally.count(status, self.began)
        self._line.answered(self)

    def start(self, status: int, headers: Headers) -> None:
        """Begins an answer that is sent in parts; without a length in the headers each part has its own."""
        self._is_started = True
        self.status = status
        measured = status in WITHOUT_CONTENT or any(name.lower() == b"content-length" for name, _ in headers)
        if not measured and self.version == "1.1":
            self._chunked = True
            headers = (*headers, (b"transfer-encoding", b"chunked"))
        elif not measured:
            # HTTP/1.0 has no parts: the end of the connection is the end of the answer.
            self.keep_alive = False
        self._begin()
        self._line.write(head_of(status, self._line.date, headers, keep_alive=self.keep_alive))

    @property
    def is_started(self) -> bool:
        """Whether the head of the answer has been sent."""
        return self._is_started

    async def send(self, part: bytes) -> None:
        """Sends a part of the answer, and returns when it has left.

        Raises Gone when the caller has hung up, or takes it too slowly.
        """
        if self.is_hung_up:
            raise Gone
        if part and self.method != "HEAD":
            self._line.write(b"%x\r\n%s\r\n" % (len(part), part) if self._chunked else part)
            await self._line.drained()
            if self.is_hung_up:
                raise Gone

    def _read_on(self) -> None:
        self._line.read_on()

    def end(self) -> None:
        """Ends an answer in parts."""
        if self._chunked and self.method != "HEAD":
            self._line.write(b"0\r\n\r\n")
        if self.tally is not None:
            self.tally.count(self.status, self.began)
        self._line.answered(self)

    def _begin(self) -> None:
        self._is_started = True
        if not self.is_whole or self._chunks:
            # The next request would begin somewhere in what is left of this one.
            self.keep_alive = False
