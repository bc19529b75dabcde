"""Serves the static files of the console and of /docs from memory: an unfinished answer needs no thread and no copy."""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import formatdate, parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.contrib.staticfiles import finders

from mqbroker.web.content_policy import POLICY
from mqbroker.wire.exchange import Exchange
from mqbroker.wire.heads import Headers

# Files that no page uses: Redoc and the browsable API, which packages contain, and files for debuggers. The Dockerfile
# removes the largest of them.
UNUSED = ["drf_spectacular_sidecar/redoc/*", "rest_framework/*", "*.map", "*.md", "LICENSE", "*.LICENSE.txt"]
READING = frozenset(("GET", "HEAD"))
MAX_AGE_SECONDS = 60

TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
    ".woff2": b"font/woff2",
}
# The headers for security, because Django's middleware, which adds them to all other answers, does not see static
# files.
SAFE: Headers = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

# A single range, by RFC 9110, 14.1.2; a request for several ranges or with another unit gets the whole file.
RANGE = re.compile(rb"bytes=(\d{0,18})-(\d{0,18})")
TAG = re.compile(rb'"[^"]*"')


class StaticFile(NamedTuple):
    """The bytes of a file, shared by all connections, with its headers."""

    content: memoryview
    modified: datetime
    tag: bytes
    # Headers of answers with 200, 206 and 304.
    validators: Headers
    headers: Headers

    @classmethod
    def read(cls, path: Path) -> "StaticFile":
        """Reads the file as it is now."""
        content = path.read_bytes()
        modified = int(path.stat().st_mtime)
        tag = b'"%s"' % hashlib.sha256(content).hexdigest()[:32].encode()
        validators: Headers = (
            (b"etag", tag),
            (b"last-modified", formatdate(modified, usegmt=True).encode()),
            (b"cache-control", b"max-age=%d, public" % MAX_AGE_SECONDS),
        )
        kind = (b"content-type", TYPES.get(path.suffix, b"application/octet-stream"))
        headers: Headers = (kind, *validators, (b"accept-ranges", b"bytes"), *SAFE)
        return cls(memoryview(content), datetime.fromtimestamp(modified, UTC), tag, validators, headers)

    def is_known(self, headers: dict[bytes, bytes]) -> bool:
        """Whether the caller has the current version, by RFC 9110, 13.2.2: compares its tag, or else its time."""
        tags = headers.get(b"if-none-match")
        if tags is not None:
            return tags.strip() == b"*" or self.tag in TAG.findall(tags)
        since = moment(headers.get(b"if-modified-since", b""))
        return since is not None and self.modified <= since

    def wanted(self, headers: dict[bytes, bytes]) -> range | None:
        """The byte range that the caller asks for, empty if it lies outside of the file; None for the whole file."""
        found = RANGE.fullmatch(headers.get(b"range", b"").strip())
        size = len(self.content)
        if found is None or headers.get(b"if-range", self.tag) != self.tag:
            return None
        first, last = found.groups()
        if not first:
            return range(max(size - int(last), 0), size) if last else None
        if last and int(last) < int(first):
            return None
        return range(int(first), min(int(last) + 1, size) if last else size)


@cache
def paths() -> Mapping[str, Path]:
    """The path of each static file in the installed packages. Finding them takes 25 ms, once per process."""
    found: dict[str, Path] = {}
    for finder in finders.get_finders():
        for name, storage in finder.list(UNUSED):
            # If two packages have the same file, the first in INSTALLED_APPS wins.
            found.setdefault(settings.STATIC_URL + name, Path(storage.path(name)))
    return found


class StaticFiles:
    """The static files of a process: their paths are found at the start, their content is read at the first use.

    Each file is in memory once, 4 MB together, and connections share this memory: 1,000 callers that do not read only
    need the memory of their sockets.
    """

    def __init__(self) -> None:
        self._prefix = settings.STATIC_URL.encode()
        self._paths = paths()
        self._read: dict[str, StaticFile] = {}

    def __call__(self, exchange: Exchange) -> bool:
        """Answers a request for a static file. Returns False if no static file has this path."""
        if not exchange.target.startswith(self._prefix):
            return False
        path = exchange.path
        if path not in self._paths:
            return False
        if exchange.method in READING:
            send(exchange, self._file(path))
        else:
            exchange.answer(405, ((b"allow", b"GET, HEAD"), *SAFE), b"")
        return True

    def _file(self, path: str) -> StaticFile:
        found = self._read.get(path)
        if found is None:
            found = self._read[path] = StaticFile.read(self._paths[path])
        return found


def send(exchange: Exchange, file: StaticFile) -> None:
    """Answers with the file, with a part of it, or with 304 if the caller has the current version."""
    if file.is_known(exchange.headers):
        exchange.answer(304, file.validators, b"")
        return
    size, wanted = len(file.content), file.wanted(exchange.headers)
    if wanted is None:
        exchange.answer(200, file.headers, file.content)
    elif wanted:
        extent = (b"content-range", b"bytes %d-%d/%d" % (wanted.start, wanted.stop - 1, size))
        exchange.answer(206, (*file.headers, extent), file.content[wanted.start : wanted.stop])
    else:
        exchange.answer(416, ((b"content-range", b"bytes */%d" % size), *SAFE), b"")


def moment(given: bytes) -> datetime | None:
    """The time in a header; None if it is not a time."""
    try:
        found = parsedate_to_datetime(given.decode("latin-1"))
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
