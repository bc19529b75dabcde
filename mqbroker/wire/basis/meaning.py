"""What the head of a request says: whether it is one request to each server on the way, and how large it is."""

from httptools import HttpRequestParser

from mqbroker.wire.exchange import Exchange, HeaderList, Line

MAX_HEADERS = 100
FRAMING = frozenset((b"content-length", b"transfer-encoding"))
# What the memory of a request takes beside the bytes of its head: its objects, and those of each header.
REQUEST_BYTES = 1024
HEADER_BYTES = 256
# What a header's line has beside its name and its value.
LINE_BYTES = len(b": \r\n")
VERSIONS = ("1.1", "1.0")
# Headers of which each server before the broker may take another one, where they come twice.
ONCE = (b"host", b"authorization", b"transfer-encoding")


class Malformed(Exception):
    """What came is no request: the status of the answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def exchange_of(line: Line, parser: HttpRequestParser, target: bytes, headers: HeaderList) -> Exchange:
    """The exchange of a head that has come whole. Raises Malformed where it is no request."""
    method = parser.get_method().decode("ascii")
    if len(headers) > MAX_HEADERS or method == "CONNECT":
        raise Malformed(400)
    if not target.startswith(b"/") and b"://" in target:
        target, headers = of_its_host(target, headers)
    exchange = Exchange(line, method, target, headers, parser.get_http_version(), parser.should_keep_alive())
    if not has_one_meaning(exchange):
        raise Malformed(400)
    return exchange


def head_of_body(exchange: Exchange) -> bytes:
    """A head that says how long the body of a request is, and no more: of one that asked for another protocol.

    RFC 9110 allows to read on as HTTP/1.1: Java's client asks for HTTP/2 with its first request. The parser of such a
    head takes what comes behind it for the other protocol.
    """
    lines = b"".join(b"%s: %s\r\n" % pair for pair in exchange.header_list if pair[0] in FRAMING)
    return b"POST / HTTP/1.1\r\n" + lines + b"\r\n"


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
