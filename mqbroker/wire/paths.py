"""The plain form of a path is the only accepted spelling, so that a proxy's rules apply to the same path.

For a proxy that refuses `/v1/api-keys`, `/v1/%61pi-keys` and `/v1//api-keys` are other paths.
"""

import re

# Characters that must not be escaped: characters that need no escape (RFC 3986, 2.3; but older programs escape `~`),
# characters that some server treats as the end of a part, and control characters. Names of retry topics need escapes:
# %25RETRY%25orders.
NOT_ESCAPED = re.compile(rb"[A-Za-z0-9._/\\\x00-\x1f\x7f-]")
ESCAPE = re.compile(rb"%(..?|$)", re.DOTALL)
HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{2}")
DOTS = (b".", b"..")


def is_plain(target: bytes) -> bool:
    """Whether an undecoded path is plain: without needless escapes, empty parts, and parts that consist of dots."""
    if b"//" in target or b"\\" in target:
        return False
    if b"%" in target and not all(map(_is_needed, ESCAPE.findall(target))):
        return False
    return b"/." not in target or not any(part in DOTS for part in target.split(b"/"))


def _is_needed(escape: bytes) -> bool:
    """Whether the two characters after a % are the escape of a character that has to be escaped."""
    return HEXADECIMAL.fullmatch(escape) is not None and not NOT_ESCAPED.match(bytes.fromhex(escape.decode()))
