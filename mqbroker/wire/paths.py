"""The plain form of a path: the one way to write it, so that a proxy's rules and the broker's read the same path.

`/v1/%61pi-keys` and `/v1//api-keys` are other paths to a proxy that refuses `/v1/api-keys`.
"""

import re

# What no escape may stand for: characters that need none (RFC 3986, 2.3; `~` is escaped by older programs), what ends
# a part of a path somewhere, and control characters. The name of a retry topic has escapes: %25RETRY%25orders.
NOT_ESCAPED = re.compile(rb"[A-Za-z0-9._/\\\x00-\x1f\x7f-]")
ESCAPE = re.compile(rb"%(..?|$)", re.DOTALL)
HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{2}")
DOTS = (b".", b"..")


def is_plain(target: bytes) -> bool:
    """Whether a path, its escapes not decoded, has one reading: no needless escapes, empty parts and dots as parts."""
    if b"//" in target or b"\\" in target:
        return False
    if b"%" in target and not all(map(_is_needed, ESCAPE.findall(target))):
        return False
    return b"/." not in target or not any(part in DOTS for part in target.split(b"/"))


def _is_needed(escape: bytes) -> bool:
    """Whether the two characters behind a % stand for one that has to be escaped."""
    return HEXADECIMAL.fullmatch(escape) is not None and not NOT_ESCAPED.match(bytes.fromhex(escape.decode()))
