"""What comes from a caller, made into exchanges by a parser in C."""

from collections import deque

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from wire.exchange import Exchange, HeaderList, Line

# Of the first line and the headers of a request.
HEAD_BYTES = 16 * 1024
MAX_HEADERS = 100
# Requests that came before the answer to an earlier one; with more of them a connection is not read meanwhile.
MAX_WAITING = 16
# What the memory of a request takes beside the bytes of its head: its objects, and those of each header.
REQUEST_BYTES = 1024
HEADER_BYTES = 256
FRAMING = frozenset((b"content-length", b"transfer-encoding"))
VERSIONS = ("1.1", "1.0")
# Headers of which each server before the broker may take another one, where they come twice.
ONCE = (b"host", b"authorization", b"transfer-encoding")
# What frames a chunk: its size, of 16 digits at most, and the ends of its lines. A longer extension counts as head.
CHUNK_BYTES = 32
# What a header's line has beside its name and its value.
LINE_BYTES = len(b": \r\n")


class Malformed(Exception):
    """What came is no request: the status of the answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Reader:
    """The requests of one connection, in their order. The parser calls the methods named `on_…`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._parser = HttpRequestParser(self)
        self._target = b""
        self._headers: HeaderList = []
        # Bytes of a head that is not complete; None within a body.
        self.head_bytes: int | None = 0
        # Bytes of the piece that is read now, in which heads of several requests may lie.
        self._piece_bytes = 0
        # What has come within a body in chunks and is none of it: extensions of chunks, and trailers.
        self._beside_bytes = 0
        # Of the trailers that have come whole: added up, since to add all of them at each takes its square.
        self._trailer_bytes = 0
        self._is_too_large = False
        # Asked for another protocol: its body is read by a new parser.
        self._resumed: Exchange | None = None
        self.arriving: Exchange | None = None
        # The requests that are still to be served, in their order.
        self.waiting: deque[Exchange] = deque()
        # Memory of those that wait but the first, which is served next.
        self._held_bytes = 0
        # Of the requests that have arrived whole.
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Whether enough has arrived that is still to be served."""
        return len(self.waiting) > MAX_WAITING or (self.arriving is not None and self.arriving.is_full)

    def add(self, exchange: Exchange) -> bool:
        """Has a request wait behind those before it; whether there is room for it."""
        waiting = self.waiting
        waiting.append(exchange)
        if len(waiting) == 1:
            return True
        size = memory_of(exchange)
        self._held_bytes += size
        return self._line.hold(size)

    def next(self) -> Exchange:
        """The request that is served next, which waits no more."""
        waiting = self.waiting
        exchange = waiting.popleft()
        if waiting:
            size = memory_of(waiting[0])
            self._held_bytes -= size
            self._line.hold(-size)
        return exchange

    def feed(self, data: bytes) -> None:
        """Reads what has arrived.

        Raises Malformed when it is no request, or its head is too large, with which all counts that comes within its
        body and is none of it.
        """
        size = self._piece_bytes = len(data)
        if self.head_bytes is not None:
            self.head_bytes += size
        else:
            self._beside_bytes += size
        try:
            while data:
                try:
                    self._parser.feed_data(data)
                    data = b""
                except HttpParserUpgrade as wish:
                    data = data[wish.args[0] :]
                    self._refuse_upgrade()
        except HttpParserError as problem:
            raise Malformed(431 if self._is_too_large else 400) from problem
        # A piece of short chunks leaves no room for what comes with a later one.
        if self._beside_bytes < 0:
            self._beside_bytes = 0
        if (self._beside_bytes if self.head_bytes is None else self.head_bytes) > HEAD_BYTES:
            raise Malformed(431)

    def _refuse_upgrade(self) -> None:
        """Reads on as HTTP/1.1, as RFC 9110 allows: Java's client asks for HTTP/2 with its first request.

        The parser takes what comes behind such a head for the other protocol. A new one reads the body by the headers
        that hold its length.
        """
        self._resumed, self.arriving = self.arriving, None
        assert self._resumed is not None
        framing = [pair for pair in self._resumed.header_list if pair[0] in FRAMING]
        self._parser = HttpRequestParser(self)
        lines = b"".join(b"%s: %s\r\n" % pair for pair in framing)
        self._parser.feed_data(b"POST / HTTP/1.1\r\n" + lines + b"\r\n")

    def close(self) -> None:
        """Drops all that it holds: the parser refers to it, and garbage is collected too rarely for the two."""
        del self._parser
        self.arriving = None
        self.waiting.clear()
        self._line.hold(-self._held_bytes)

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))
        # A trailer, behind a body in chunks: nothing here reads it.
        if self.head_bytes is None and self._resumed is None:
            self._trailer_bytes += len(name) + len(value) + LINE_BYTES
            self._require_few_trailers()

    def on_headers_complete(self) -> None:
        parser, headers = self._parser, self._headers
        head_bytes, self.head_bytes = self.head_bytes or 0, None
        self._headers, self._beside_bytes, self._trailer_bytes = [], 0, 0
        if self._resumed is not None:
            self.arriving, self._resumed = self._resumed, None
            return
        method = parser.get_method().decode("ascii")
        if head_bytes > HEAD_BYTES or self._piece_bytes > HEAD_BYTES:
            self._is_too_large = size_of(self._target, headers) > HEAD_BYTES
        if self._is_too_large or len(headers) > MAX_HEADERS or method == "CONNECT":
            # The parser turns it into an error of its own.
            raise Malformed(400)
        target = self._target
        if not target.startswith(b"/") and b"://" in target:
            target, headers = of_its_host(target, headers)
        version = parser.get_http_version()
        exchange = Exchange(self._line, method, target, headers, version, parser.should_keep_alive())
        if not has_one_meaning(exchange):
            raise Malformed(400)
        self.arriving = exchange
        if not self.add(exchange):
            self._is_too_large = True
            raise Malformed(431)

    def _require_few_trailers(self) -> None:
        self._is_too_large = len(self._headers) > MAX_HEADERS or self._trailer_bytes > HEAD_BYTES
        if self._is_too_large:
            # The parser turns it into an error of its own.
            raise Malformed(431)

    def on_body(self, body: bytes) -> None:
        self._beside_bytes -= len(body)
        if self.arriving is not None:
            self.arriving.arrive(body)

    def on_chunk_complete(self) -> None:
        self._beside_bytes -= CHUNK_BYTES

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        self.head_bytes = 0
        self.count += 1
        if self.arriving is not None:
            self.arriving.complete()
            self.arriving = None


def size_of(target: bytes, headers: HeaderList) -> int:
    """About the bytes of a head."""
    return len(target) + sum(len(name) + len(value) + LINE_BYTES for name, value in headers)


def memory_of(exchange: Exchange) -> int:
    """About the bytes that a request takes without its body."""
    lines = exchange.header_list
    return REQUEST_BYTES + HEADER_BYTES * len(lines) + size_of(exchange.target, lines)


def has_one_meaning(exchange: Exchange) -> bool:
    """Whether each server on the way reads the same request.

    HTTP/1.1 names its host, once, by RFC 9112, 3.2. A body is framed by its length or in chunks and coded by nothing
    else (6.1), in chunks not in HTTP/1.0.
    """
    headers, lines, version = exchange.headers, exchange.header_list, exchange.version
    if version not in VERSIONS or (version == "1.1" and b"host" not in headers):
        return False
    if len(headers) != len(lines) and any([name for name, _ in lines].count(once) > 1 for once in ONCE):
        return False
    coding = headers.get(b"transfer-encoding")
    return coding is None or (version == "1.1" and coding.lower() == b"chunked")


def of_its_host(target: bytes, headers: HeaderList) -> tuple[bytes, HeaderList]:
    """The path of a target that is a whole URL, as callers of a proxy send it, and the headers with the URL's host.

    By RFC 9112, 3.2.2, a server takes it, and what `Host` says is ignored.
    """
    _, _, rest = target.partition(b"://")
    end = next((at for at, sign in enumerate(rest) if sign in b"/?"), len(rest))
    path = rest[end:] if rest[end : end + 1] == b"/" else b"/" + rest[end:]
    return path, [*((name, value) for name, value in headers if name != b"host"), (b"host", rest[:end])]
