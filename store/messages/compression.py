"""Compressed bodies: a producer compresses, the broker keeps the bytes, and unpacks them where it shows or pushes them.

RocketMQ's client compresses from 4 KiB on and sets a flag of the message. Here the flag is the field `compression`.
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
# Bytes of a piece: some 1 ms of unpacking.
PIECE_BYTES = 256 * 1024
# Packed bytes that are taken for one piece: of blocks that unpack to nothing these are 8 ms.
INPUT_BYTES = 64 * 1024
# The memory that a frame of zstd may ask for: 8 MiB, as RFC 8878 has it for what everybody can read.
MAX_WINDOW_LOG = 23
GZIP = "gzip"
# What zlib reads a header of: its own, or gzip's.
_ZLIB_WINDOW = {"zlib": zlib.MAX_WBITS, GZIP: zlib.MAX_WBITS | 16}


class Unreadable(Exception):
    """The bytes are not one whole stream of their compression."""


def pieces(compression: str, packed: bytes) -> Iterator[bytes]:
    """The unpacked bytes, PIECE_BYTES at most at a time: a caller that stops has no more of them in memory.

    `compression` is zlib, zstd or gzip. A piece may be empty. Raises Unreadable for bytes that are damaged or cut
    short, for bytes behind the end, and for a stream that unpacks to less than half of it, which no packer makes.
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
    """The pieces, each with the packed bytes that are taken by then; at its end without those behind the stream."""
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
    """As `_of_zlib`."""
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
    """The compression of a stored body; None for one that lies as it came."""
    return _OF_FORM.get(body_form)


def beginning(compression: Compression, packed: bytes, most: int) -> tuple[bytes, bool]:
    """The first `most` bytes of the unpacked body, and whether the body ends there.

    `packed` may be the first bytes of a compressed body: then only the bytes that they unpack to are there.
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
