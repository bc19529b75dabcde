"""Previews of message bodies: the first KiB as text, or as a hex dump when it is no text."""

from dataclasses import dataclass

from store.messages import TEXT
from store.messages.compression import Compression, beginning, of_form

PREVIEW_BYTES = 1024
BYTES_PER_LINE = 16


@dataclass(frozen=True)
class Preview:
    """The beginning of a body. `size` is the size of the stored body in bytes, compressed by `compression` if set."""

    text: str
    is_text: bool
    size: int
    cut: bool
    compression: Compression | None = None


def preview(first: bytes, size: int, body_form: str = TEXT, most: int = PREVIEW_BYTES) -> Preview:
    """The preview of a stored body of this size, made from its `first` bytes: at most `most` bytes, decompressed."""
    compressed = of_form(body_form)
    shown, is_all = (first, size <= len(first)) if compressed is None else beginning(compressed, first, most)
    text = as_text(shown, not is_all)
    return Preview(
        text if text is not None else as_hex(shown), text is not None, size, cut=not is_all, compression=compressed
    )


def as_text(raw: bytes, cut: bool) -> str | None:
    """The bytes as UTF-8 text, or None when they are no text. A last character that the cut divided is left out."""
    for end in (len(raw), *(len(raw) - lost for lost in (1, 2, 3) if cut)):
        try:
            text = raw[:end].decode()
        except UnicodeDecodeError:
            continue
        return text if all(character.isprintable() or character in "\r\n\t" for character in text) else None
    return None


def as_hex(raw: bytes) -> str:
    """The bytes as lines of offset, hexadecimal and ASCII."""
    return "\n".join(
        hex_line(start, raw[start : start + BYTES_PER_LINE]) for start in range(0, len(raw), BYTES_PER_LINE)
    )


def hex_line(start: int, line: bytes) -> str:
    """A line of a hex dump."""
    visible = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
    return f"{start:04x}  {line.hex(' '):<{BYTES_PER_LINE * 3}} {visible}"
