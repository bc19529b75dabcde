"""Cuts a JSON text into pieces at character boundaries, so that each part of a long text can be decoded separately."""

import re
from collections.abc import Iterator

PIECE_BYTES = 64 * 1024
# The longest escape of a character has two surrogates.
ESCAPE_BYTES = 12
HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]")


def of(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the start and the bytes of each piece, with escaped quotes and backslashes masked.

    So every quote in a piece begins or ends a text.
    """
    at = 0
    while at < len(text):
        masked = text[at : at + PIECE_BYTES].replace(b"\\\\", b"__").replace(b'\\"', b"__")
        if at + len(masked) < len(text):
            masked = masked[: _whole_characters(masked, text[at + len(masked)])]
        yield at, masked
        at += len(masked)


def _whole_characters(masked: bytes, following: int) -> int:
    """How many bytes at the start of a piece are whole characters. `following` is the byte after the piece."""
    size = len(masked)
    for place in range(size - 3, size):
        # A byte with these bits continues a character of UTF-8.
        if masked[place] >= 0xC0 and following & 0xC0 == 0x80:
            size = place
            break
    escape = masked.rfind(b"\\", size - ESCAPE_BYTES, size)
    while escape >= 0:
        is_long = masked[escape + 1 : escape + 2] == b"u"
        is_whole = escape + (6 if is_long else 2) <= size
        if is_whole and not (is_long and HIGH_SURROGATE.match(masked, escape) and escape + 6 == size):
            break
        size = escape
        escape = masked.rfind(b"\\", size - ESCAPE_BYTES, size)
    return size
