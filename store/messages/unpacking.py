"""Limits how much of its compressed bodies one request has decompressed, and decompresses in steps between other
requests.

A batch of 700 bodies of 6 kB may decompress to 2.8 GB. Only a piece of it is in memory, but without a limit it took 20
s.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Literal

from store.errors import MessageTooLarge, SystemBusy
from store.messages.compression import INPUT_BYTES, Compression, beginning, pieces
from store.process import pacing
from store.process.configuration import setting

# The limit of one request, in unpacked messages of the largest size: 0.2 s of work. Beyond it the request is refused.
MAX_MESSAGES = 16
# A packed byte counts as this many unpacked bytes, because reading it may take as long.
OF_PACKED = 4
# A body of at most 64 KiB is unpacked at once in the event loop, in 0.2 ms.
SOON_BYTES = 64 * 1024


class Unpacked:
    """How many bytes one request has decompressed: in total, and since it last let other requests run."""

    __slots__ = ("_may_come_again", "_size", "_turn", "_work")

    def __init__(self, *, may_come_again: bool = False) -> None:
        self._may_come_again = may_come_again
        self._size = 0
        self._work = 0
        # Held while a body is decompressed, so that earlier bodies are complete when the limit is reached.
        self._turn = asyncio.Lock()

    @property
    def is_calm(self) -> bool:
        """Whether the request may continue to decompress in this turn of the event loop."""
        return self._work < pacing.STEP_BYTES

    def count(self, packed: int, unpacked: int) -> None:
        """Counts bytes. Beyond the limit raises MessageTooLarge, or SystemBusy for one call of several."""
        self._size += unpacked
        self._work += unpacked + OF_PACKED * packed
        if self._size <= (limit := MAX_MESSAGES * setting("MAX_MESSAGE_BYTES")):
            return
        what = f"The decompressed bodies of the request have more than {limit} bytes together, the limit"
        if self._may_come_again:
            raise SystemBusy(f"{what}: send this message again.")
        raise MessageTooLarge(f"{what}: send less in one request.")

    async def each(self, compression: str, packed: bytes, take: Callable[[bytes], None]) -> None:
        """Passes the pieces of a body to `take`; other requests run in between.

        Raises the errors of `pieces`, `count` and `take`.
        """
        found, size = pieces(compression, packed), min(len(packed), INPUT_BYTES)
        async with self._turn:
            self.count(0, 0)
            piece = await self._next(found)
            while piece is not None:
                self.count(size, len(piece))
                take(piece)
                piece = await self._next(found)

    async def _next(self, found: Iterator[bytes]) -> bytes | None:
        if self.is_calm:
            return next(found, None)
        self._work = 0
        async with pacing.step():
            return next(found, None)


# True while the request has decompressed nothing, which is the usual case; None outside of a request.
_of_request: ContextVar[Unpacked | Literal[True] | None] = ContextVar("unpacked", default=None)


def begin() -> None:
    """Starts the count for a request."""
    _of_request.set(True)


def begin_many() -> None:
    """Starts the count for a request with many calls, each of which is answered separately, and may be repeated by a
    client.
    """
    _of_request.set(Unpacked(may_come_again=True))


def current() -> Unpacked:
    """The counter of this request. Outside of a request each body gets a new counter."""
    found = _of_request.get()
    if isinstance(found, Unpacked):
        return found
    made = Unpacked()
    if found is not None:
        _of_request.set(made)
    return made


def is_soon_read(compression: Compression, packed: bytes) -> bool:
    """Whether a body unpacks to at most SOON_BYTES, and may be unpacked in this turn of the event loop."""
    request = current()
    if len(packed) > SOON_BYTES or not request.is_calm:
        return False
    found, is_all = beginning(compression, packed, SOON_BYTES)
    request.count(len(packed), len(found))
    return bool(found) and is_all
