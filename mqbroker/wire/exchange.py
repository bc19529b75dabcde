"""An HTTP request, and the functions that send its answer."""

import asyncio
from collections.abc import Generator
from typing import Protocol, TypeVar
from urllib.parse import unquote_to_bytes

from mqbroker.wire.arriving import ArrivingBody, Gone
from mqbroker.wire.heads import Headers, head_of, head_of_whole

Given = TypeVar("Given")
# The headers of a request, as they arrived.
HeaderList = list[tuple[bytes, bytes]]
# At the end of the process a request under way has a second: this part for the rest of its body, the rest for its
# answer.
LAST_BODY_SECONDS = 0.6
WITHOUT_CONTENT = frozenset((204, 304))
# Content up to this number of bytes is joined to its head: the copy is cheaper than a second write.
COPIED_BYTES = 16 * 1024


class Line(Protocol):
    """The methods and values of a connection that an exchange uses."""

    @property
    def date(self) -> bytes:
        """The current time, as the value of the header `date`."""

    @property
    def client(self) -> tuple[str, int] | None:
        """The address of the caller's socket."""

    @property
    def server(self) -> tuple[str, int] | None:
        """The address of this process's socket."""

    def hold(self, size: int) -> bool:
        """Counts bytes of requests that wait for earlier requests. Returns False if there is no room for the bytes."""

    def write(self, data: bytes | memoryview) -> None:
        """Sends bytes, or keeps them until the socket takes them."""

    async def drained(self) -> None:
        """Waits until almost all written bytes are in the socket."""

    def read_on(self) -> None:
        """Reads further bytes of a body."""

    def cut(self) -> None:
        """Closes the connection, because an answer in parts is not complete."""

    def answered(self, exchange: "Exchange") -> None:
        """Called when the answer is complete: serves the next request, or closes the connection."""


class Tally(Protocol):
    """Counts the answers of exchanges."""

    def count(self, status: int, began: float) -> None:
        """Counts a complete answer by its status; `began` is when its request began."""


class Shows(Protocol):
    """Changes names of topics and groups for a caller in a namespace, in a request and in the JSON of its answer."""

    def wrap_names(self, given: Given) -> Given:
        """The decoded body with names that include the namespace."""

    def show_document(self, content: bytes) -> bytes:
        """The JSON document with names as the caller writes them, without the namespace."""

    def showing_document(self, content: bytes) -> Generator[None, None, bytes]:
        """Shows a large object as `show_document` does, with a pause after each part."""


class Exchange(ArrivingBody):
    """A request whose body may still be arriving; its answer is sent whole, or in parts."""

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
        # If a header occurs twice, the last value counts.
        self.headers = dict(headers)
        self.version = version
        self.keep_alive = keep_alive
        # The status of the answer, if the received bytes are not a request.
        self.refused_as = refused_as
        self.request_id = b""
        # Whether this is new work that is refused, because too much waits.
        self.is_refused = False
        self._chunked = False
        # Counts the answer, with the start time of the request in the monotonic clock; None if it is not counted.
        self.tally: Tally | None = None
        self.began = 0.0
        self.status = 0
        # Changes the names in the request and its answer; None: they are not changed.
        self.namespace: Shows | None = None

    @property
    def path(self) -> str:
        """The path, with its escapes decoded."""
        if b"%" in self.target or not self.target.isascii():
            return unquote_to_bytes(self.target).decode("utf-8", "replace")
        return self.target.decode("ascii")

    @property
    def client(self) -> tuple[str, int] | None:
        """The address of the caller, or of a proxy before it."""
        return self._line.client

    @property
    def server(self) -> tuple[str, int] | None:
        """The address of this process's socket to which the caller is connected."""
        return self._line.server

    def cut(self) -> None:
        """Aborts an answer in parts, so that the caller does not take the answer for complete."""
        self.hang_up()
        self._line.cut()

    def finish(self) -> None:
        """Called when the process is stopping: a waiting request is answered now, and the connection is closed after
        it.
        """
        self.keep_alive = False
        self._end_waits()
        if not self.is_whole:
            asyncio.get_running_loop().call_later(LAST_BODY_SECONDS, self._cut)

    def answer(self, status: int, headers: Headers, content: bytes | memoryview) -> None:
        """Sends a whole answer. Its head has the request's id and the length; large content is not copied."""
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
        """Begins an answer in parts. Without a length in the headers it is sent in chunks."""
        self._is_started = True
        self.status = status
        measured = status in WITHOUT_CONTENT or any(name.lower() == b"content-length" for name, _ in headers)
        if not measured and self.version == "1.1":
            self._chunked = True
            headers = (*headers, (b"transfer-encoding", b"chunked"))
        elif not measured:
            # HTTP/1.0 has no chunks: the end of the connection is the end of the answer.
            self.keep_alive = False
        self._begin()
        self._line.write(head_of(status, self._line.date, headers, keep_alive=self.keep_alive))

    @property
    def is_started(self) -> bool:
        """Whether the head of the answer has been sent."""
        return self._is_started

    async def send(self, part: bytes) -> None:
        """Sends a part of the answer, and waits until it has left.

        Raises Gone if the caller has hung up or takes the answer too slowly.
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
            # The unread rest of this body would be taken for the next request.
            self.keep_alive = False
