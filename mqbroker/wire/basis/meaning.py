"""Checks a request's head: every server on the way must read the same request from it, of the same size."""

from httptools import HttpRequestParser

from mqbroker.wire.exchange import Exchange, HeaderList, Line

MAX_HEADERS = 100
FRAMING = frozenset((b"content-length", b"transfer-encoding"))
# Bytes of memory that a request takes besides its head: for its objects, and for the objects of each header.
REQUEST_BYTES = 1024
HEADER_BYTES = 256
# The bytes of a header's line besides name and value.
LINE_BYTES = len(b": \r\n")
VERSIONS = ("1.1", "1.0")
# Headers that must not come twice, because a proxy and the broker could use different ones.
ONCE = (b"host", b"authorization", b"x-namespace", b"content-encoding", b"transfer-encoding")


class Malformed(Exception):
    """The received bytes are not a valid request. Has the status of the answer."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def exchange_of(line: Line, parser: HttpRequestParser, target: bytes, headers: HeaderList) -> Exchange:
    """The exchange of a head that has arrived whole. Raises Malformed if it is not a valid request."""
    method = parser.get_method().decode("ascii")
    if len(headers) > MAX_HEADERS or method == "CONNECT":
        raise Malformed(400)
    if not target.startswith(b"/") and b"://" in target:
        target, headers = of_its_host(target, headers)
    exchange = Exchange(line, method, target, headers, parser.get_http_version(), parser.should_keep_alive())
    found = exchange.headers
    # Almost all heads have one host, no header twice and no chunks: every server understands such a head in the same
    # way.
    is_usual = exchange.version == "1.1" and len(found) == len(headers) and b"host" in found
    if not (is_usual and b"transfer-encoding" not in found) and not has_one_meaning(exchange):
        raise Malformed(400)
    return exchange


def head_of_body(exchange: Exchange) -> bytes:
    """A head with only the length of the body, for a request that asked for another protocol.

    RFC 9110 allows the broker to continue with HTTP/1.1; Java's client asks for HTTP/2 in its first request. The parser
    of the original head would treat the bytes after it as the other protocol.
    """
    lines = b"".join(b"%s: %s\r\n" % pair for pair in exchange.header_list if pair[0] in FRAMING)
    return b"POST / HTTP/1.1\r\n" + lines + b"\r\n"


def size_of(target: bytes, headers: HeaderList) -> int:
    """The approximate size of a head in bytes."""
    return len(target) + sum(len(name) + len(value) + LINE_BYTES for name, value in headers)


def memory_of(exchange: Exchange) -> int:
    """The approximate memory of a request without its body, in bytes."""
    lines = exchange.header_list
    return REQUEST_BYTES + HEADER_BYTES * len(lines) + size_of(exchange.target, lines)


def has_one_meaning(exchange: Exchange) -> bool:
    """Whether each server on the way reads the same request from a head of an unusual form.

    By RFC 9112 a request of HTTP/1.1 has exactly one Host (3.2). A body has either a length or chunks and no other
    transfer coding (6.1), and no chunks in HTTP/1.0.
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

    By RFC 9112, 3.2.2, a server accepts such a target and ignores the header `Host`.
    """
    _, _, rest = target.partition(b"://")
    end = next((at for at, sign in enumerate(rest) if sign in b"/?"), len(rest))
    path = rest[end:] if rest[end : end + 1] == b"/" else b"/" + rest[end:]
    return path, [*((name, value) for name, value in headers if name != b"host"), (b"host", rest[:end])]
