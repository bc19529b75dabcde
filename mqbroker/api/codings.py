"""Content codings of HTTP: decompresses request bodies, and chooses the coding of answers."""

import io
import sys
import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

from mqbroker.wire.heads import Headers
from store.errors import BadRequest, MessageTooLarge
from store.messages import compression
from store.messages.compression import GZIP, Unreadable
from store.process import pacing

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

IDENTITY = b"identity"
ZSTD = b"zstd"
# The supported values of Content-Encoding, each with its compression.
CODINGS: Mapping[bytes, str | None] = {IDENTITY: None, b"gzip": GZIP, b"x-gzip": GZIP, ZSTD: "zstd"}
# The maximum bytes of a decompressed body, whatever the route's limit: decompressing a few bytes could otherwise take
# as long as a body of that limit.
UNPACKED_BYTES = 16 * 1024 * 1024
# Shorter answers are not encoded: they fit into one packet anyway.
LEAST_BYTES = 1024
# This level takes 0.5 ms for 64 KiB of JSON. Higher levels take three times as long for a sixth less.
GZIP_LEVEL = 1
CODED_TYPES = frozenset((b"application/json", b"application/problem+json"))


class Coder(Protocol):
    """Encodes an answer piece by piece."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


def of(headers: Mapping[bytes, bytes]) -> str | None:
    """The compression of a request's body. The handler has refused other codings before."""
    given = headers.get(b"content-encoding")
    return None if given is None else CODINGS[given.lower()]


async def decoded(name: str, content: bytes, limit: int, hold: Callable[[int], None]) -> bytes:
    """The decompressed body of a request. Counts its size first; `hold` reserves memory before the body is kept.

    Raises MessageTooLarge for more than `limit` bytes or UNPACKED_BYTES, BadRequest for bytes that are not exactly one
    complete stream of the coding, and the errors of `hold`.
    """
    try:
        hold(await _size_of(name, content, min(limit, UNPACKED_BYTES)))
        # The parts are collected in one buffer, because joining 16 MB at the end would take 8 ms.
        whole = io.BytesIO()
        async for piece in pacing.each(compression.pieces(name, content)):
            whole.write(piece)
        return whole.getvalue()
    except Unreadable as problem:
        raise BadRequest(
            f"The body cannot be decompressed as {name} ({problem}): send one complete {name} stream."
        ) from problem


async def _size_of(name: str, content: bytes, most: int) -> int:
    size = 0
    async for piece in pacing.each(compression.pieces(name, content)):
        size += len(piece)
        if size > most:
            raise MessageTooLarge(f"The decompressed body has more than {most} bytes, the limit.")
    return size


def wanted(headers: Mapping[bytes, bytes], answered: Headers, size: int) -> bytes | None:
    """The coding for an answer of `size` bytes; None for no coding."""
    accepted = headers.get(b"accept-encoding")
    if accepted is None or size < LEAST_BYTES or _type_of(answered) not in CODED_TYPES:
        return None
    takes = _weights(accepted)
    best = max((ZSTD, b"gzip"), key=lambda coding: takes.get(coding, 0.0))
    return best if takes.get(best, 0.0) > 0 else None


def _type_of(answered: Headers) -> bytes:
    return next((value.partition(b";")[0] for name, value in answered if name == b"content-type"), b"")


def _weights(accepted: bytes) -> dict[bytes, float]:
    """The codings in an Accept-Encoding, each with its weight; an invalid weight counts as 0."""
    found = {}
    for one in accepted.lower().split(b","):
        coding, _, weight = one.partition(b";")
        _, _, value = weight.partition(b"q=")
        try:
            found[coding.strip()] = float(value) if weight.strip() else 1.0
        except ValueError:
            found[coding.strip()] = 0.0
    return found


def coder(coding: bytes) -> Coder:
    """The object that encodes one answer."""
    if coding == ZSTD:
        return zstd.ZstdCompressor()
    return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS | 16)


def named(coding: bytes) -> Headers:
    """The headers of an answer, with the headers of this coding added."""
    return ((b"content-encoding", coding), (b"vary", b"accept-encoding"))
