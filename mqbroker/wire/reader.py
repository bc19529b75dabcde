"""Makes exchanges from the bytes of a caller, with a parser in C."""

from collections import deque

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from mqbroker.wire.basis.meaning import (
    LINE_BYTES,
    MAX_HEADERS,
    Malformed,
    exchange_of,
    head_of_body,
    memory_of,
    size_of,
)
from mqbroker.wire.basis.unparsed import SLICE_BYTES, Unparsed
from mqbroker.wire.exchange import Exchange, HeaderList, Line

# The most bytes of the first line and the headers of a request.
HEAD_BYTES = 16 * 1024
# A head is measured if at least this many bytes came with it.
MEASURED_BYTES = HEAD_BYTES // 2
# The most requests that wait for the answer to an earlier request. A connection with more such requests is not read.
MAX_WAITING = 16
# Frames are chunks, headers (eight count as one frame) and requests. This is the maximum per read of a connection, and
# per later turn (`Connections.read_later`). 64 frames take 30 µs; a piece of a socket may have 43,000.
FRAMES = 64
MORE_FRAMES = 512
REQUEST_FRAMES = 8
# The most bytes that are parsed at once when they arrive together, as most requests do, unless this connection has sent
# more than FRAMES in such a piece before: 2 KB of chunks of one byte take 0.2 ms, and many connections may send in one
# turn.
AT_ONCE_BYTES = 2 * 1024
# Parts of a body that are shorter are joined before they are added.
SHORT_BYTES = 64
# The bytes around a chunk: its size with at most 16 digits, and the ends of lines. Longer extensions count as head.
CHUNK_BYTES = 32


class Reader:
    """The requests of one connection, in their order. The parser calls the methods named `on_…`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._parser = HttpRequestParser(self)
        self._target = b""
        self._headers: HeaderList = []
        # The bytes of a head that is not complete; None within a body.
        self.head_bytes: int | None = 0
        # The bytes of the slice that is parsed now, which may have heads of several requests.
        self._piece_bytes = 0
        self._unparsed = Unparsed()
        self._at_once_bytes = AT_ONCE_BYTES
        # The frames that this call of `feed` has read.
        self._frames = 0
        # Whether unparsed bytes are left, which come before further bytes from the socket.
        self.is_behind = False
        self._short: list[bytes] = []
        # The bytes within a chunked body that do not belong to it: extensions of chunks, and trailers.
        self._beside_bytes = 0
        # The bytes of complete trailers, as a running sum: adding up all of them each time would take quadratic time.
        self._trailer_bytes = 0
        self._is_too_large = False
        # The request asked for another protocol, so its body is read by a new parser.
        self._resumed: Exchange | None = None
        self.arriving: Exchange | None = None
        # The requests that are not served yet, in the order of their arrival.
        self.waiting: deque[Exchange] = deque()
        # The memory of waiting requests, without the first, which is served next, and of unparsed bytes.
        self._held_bytes = 0
        # How many of the waiting requests have arrived whole.
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Whether the waiting requests have reached the limit, at which the socket is not read further."""
        return len(self.waiting) > MAX_WAITING or (self.arriving is not None and self.arriving.is_full)

    def add(self, exchange: Exchange) -> bool:
        """Adds a request after the earlier requests. Returns False if there is no room for the request."""
        waiting = self.waiting
        waiting.append(exchange)
        if len(waiting) == 1:
            return True
        size = memory_of(exchange)
        self._held_bytes += size
        return self._line.hold(size)

    def next(self) -> Exchange:
        """Removes and returns the request that is served next."""
        waiting = self.waiting
        exchange = waiting.popleft()
        if waiting:
            size = memory_of(waiting[0])
            self._held_bytes -= size
            self._line.hold(-size)
        return exchange

    def feed(self, data: bytes = b"", most: int = FRAMES) -> None:
        """Parses arrived bytes, up to this number of frames.

        If unparsed bytes are left, `is_behind` is True afterwards. Raises Malformed if they are not a valid request, if
        a head is too large (extensions of chunks and trailers count as head), or if waiting requests are too large.
        """
        self._frames = 0
        if len(data) <= self._at_once_bytes and not self.is_behind:
            self._parse(data)
            if self._frames > FRAMES:
                self.is_behind, self._at_once_bytes = True, SLICE_BYTES
        else:
            self._feed_in_slices(data, most)

    def _feed_in_slices(self, data: bytes, most: int) -> None:
        unparsed = self._unparsed
        held = unparsed.size
        unparsed.add(data)
        # The headers of an incomplete head count as frames as far as they have arrived.
        read, since = 0, len(self._headers)
        while unparsed.is_left and read < most and len(self.waiting) <= MAX_WAITING:
            before = read
            self._parse(unparsed.next())
            if len(self._headers) > MAX_HEADERS:
                raise Malformed(400)
            read = self._frames + len(self._headers) - since
            unparsed.adapt(read - before)
        self.is_behind = unparsed.is_left
        if unparsed.is_left or held:
            self._hold(unparsed.size - held)

    def _hold(self, size: int) -> None:
        self._held_bytes += size
        if not self._line.hold(size) and size > 0:
            raise Malformed(431)

    def _parse(self, data: bytes | memoryview) -> None:
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
        if self._short:
            self._join()
        # Many short chunks must not make room for longer extensions of later chunks.
        if self._beside_bytes < 0:
            self._beside_bytes = 0
        if (self._beside_bytes if self.head_bytes is None else self.head_bytes) > HEAD_BYTES:
            raise Malformed(431)

    def _refuse_upgrade(self) -> None:
        self._resumed, self.arriving = self.arriving, None
        assert self._resumed is not None
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(head_of_body(self._resumed))

    def close(self) -> None:
        """Drops all data: parser and reader refer to each other, and would wait long for the garbage collector."""
        del self._parser
        self.arriving = None
        self._unparsed = Unparsed()
        self.waiting.clear()
        self._line.hold(-self._held_bytes)

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))
        # A trailer after a chunked body, which the broker ignores.
        if self.head_bytes is None and self._resumed is None:
            self._trailer_bytes += len(name) + len(value) + LINE_BYTES
            self._is_too_large = len(self._headers) > MAX_HEADERS or self._trailer_bytes > HEAD_BYTES
            if self._is_too_large:
                # The parser replaces this exception by its own, which the caller handles.
                raise Malformed(431)

    def on_headers_complete(self) -> None:
        headers = self._headers
        self._frames += REQUEST_FRAMES + len(headers)
        head_bytes, self.head_bytes = self.head_bytes or 0, None
        self._headers, self._beside_bytes, self._trailer_bytes = [], 0, 0
        if self._resumed is not None:
            self.arriving, self._resumed = self._resumed, None
            return
        # The bytes are not counted if the slice also has another request before this one.
        if head_bytes > MEASURED_BYTES or self._piece_bytes > MEASURED_BYTES:
            self._is_too_large = size_of(self._target, headers) > HEAD_BYTES
        if self._is_too_large:
            raise Malformed(431)
        self.arriving = exchange = exchange_of(self._line, self._parser, self._target, headers)
        if not self.add(exchange):
            self._is_too_large = True
            raise Malformed(431)

    def on_body(self, body: bytes) -> None:
        size = len(body)
        self._beside_bytes -= size
        if self.arriving is None:
            return
        if size < SHORT_BYTES:
            self._short.append(body)
            return
        if self._short:
            self._join()
        self.arriving.arrive(body)

    def _join(self) -> None:
        joined = b"".join(self._short)
        self._short.clear()
        if self.arriving is not None:
            self.arriving.arrive(joined)

    def on_chunk_complete(self) -> None:
        self._frames += 1
        self._beside_bytes -= CHUNK_BYTES

    def on_message_complete(self) -> None:
        if self._short:
            self._join()
        if self._parser.should_upgrade():
            return
        self.head_bytes = 0
        self.count += 1
        if self.arriving is not None:
            self.arriving.complete()
            self.arriving = None
