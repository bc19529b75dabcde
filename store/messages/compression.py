"""Compressed bodies: producers compress; the broker stores the bytes, and decompresses them to validate, show or push
them.

RocketMQ's client compresses bodies of 4 KiB and more and sets a flag of the message. Here this flag is the field
`compression`.
"""

import sys
import zlib
from collections.abc import Iterator
from typing import Literal

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression = Literal["zlib", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = ("zlib", "zstd")
_OF_FORM: dict[str, Compression] = {name: name for name in COMPRESSIONS}
# The most bytes of an unpacked piece: some 1 ms of work.
PIECE_BYTES = 256 * 1024
# The most packed bytes for one piece: 8 ms of work if their blocks unpack to nothing.
INPUT_BYTES = 64 * 1024
# The memory that a zstd frame may require: 8 MiB, the least that decoders should support by RFC 8878. A frame that
# requires more is refused.
MAX_WINDOW_LOG = 23
GZIP = "gzip"
# The header that zlib has to read: its own or the header of gzip.
_ZLIB_WINDOW = {"zlib": zlib.MAX_WBITS, GZIP: zlib.MAX_WBITS | 16}


class Unreadable(Exception):
    """The bytes are not exactly one complete stream of the compression."""


def pieces(compression: str, packed: bytes) -> Iterator[bytes]:
    """The unpacked bytes, in pieces of at most PIECE_BYTES. A caller that stops early has not decompressed the rest.

    `compression` is zlib, zstd or gzip. A piece may be empty. Raises Unreadable if bytes are damaged or missing, if
    bytes follow the end, and if a stream unpacks to less than half of its size, which no compressor produces.
    """
    size = taken = 0
    found = _of_zstd(packed) if compression == "zstd" else _of_zlib(packed, _ZLIB_WINDOW[compression])
    try:
        for piece, taken in found:
            size += len(piece)
            if taken > INPUT_BYTES and size < taken // 2:
                raise Unreadable(f"its first {taken} bytes unpack to {size}")
            yield piece
    except (zlib.error, zstd.ZstdError) as problem:
        raise Unreadable(str(problem)) from problem
    if taken < len(packed):
        raise Unreadable("there are bytes behind the end of the stream")


def _of_zlib(packed: bytes, window: int) -> Iterator[tuple[bytes, int]]:
    """The pieces, each with the number of packed bytes used so far; the last number excludes bytes after the stream."""
    stream, given, at = zlib.decompressobj(window), b"", 0
    while not stream.eof:
        if not given:
            given = packed[at : at + INPUT_BYTES]
            at += len(given)
        piece = stream.decompress(given, PIECE_BYTES)
        given = stream.unconsumed_tail
        if not (piece or given or stream.eof) and at == len(packed):
            raise Unreadable("the stream is cut short")
        yield piece, at - len(stream.unused_data)


def _of_zstd(packed: bytes) -> Iterator[tuple[bytes, int]]:
    """The decompressed pieces of a zstd body, in the same form as `_of_zlib` yields them for a zlib body."""
    stream = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG})
    at = 0
    while not stream.eof:
        given = packed[at : at + INPUT_BYTES] if stream.needs_input else b""
        if stream.needs_input and not given:
            raise Unreadable("the stream is cut short")
        at += len(given)
        piece = stream.decompress(given, PIECE_BYTES)
        yield piece, at - len(stream.unused_data)


def of_form(body_form: str) -> Compression | None:
    """The compression of a stored body; None for a body that is not compressed."""
    return _OF_FORM.get(body_form)


def beginning(compression: Compression, packed: bytes, most: int) -> tuple[bytes, bool]:
    """The first `most` bytes of the decompressed body, and whether the body ends there.

    `packed` may be the beginning of a compressed body; then the result has the bytes that can be decompressed from it.
    """
    found = bytearray()
    try:
        for piece in pieces(compression, packed):
            found += piece
            if len(found) > most:
                break
    except Unreadable:
        return bytes(found[:most]), False
    return bytes(found[:most]), len(found) <= most
