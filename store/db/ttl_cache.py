"""What a process remembers of configuration for a moment, so that the message path does not ask for it each time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_REMEMBERED = 20_000


class Memory(Generic[Key, Value]):
    """Values by key, each believed for `seconds`. However many ask for one at once, it is looked up once.

    What is not found (None) is not remembered: it may be made at any moment.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._known: dict[Key, tuple[float, Value]] = {}
        self._looking: dict[Key, asyncio.Future[Value | None]] = {}

    def known(self, key: Key) -> Value | None:
        """The value that is remembered; None also where it has to be looked up."""
        known = self._known.get(key)
        return known[1] if known is not None and known[0] > time.monotonic() else None

    async def get(self, key: Key, look_up: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """The value that is remembered, or else looked up now."""
        known = self.known(key)
        if known is not None:
            return known
        looking = self._looking.get(key)
        if looking is None:
            looking = self._looking[key] = asyncio.ensure_future(self._look_up(key, look_up))
        # Whoever asks may go away; the look-up goes on for the others.
        return await asyncio.shield(looking)

    async def _look_up(self, key: Key, look_up: Callable[[], Awaitable[Value | None]]) -> Value | None:
        looking = asyncio.current_task()
        try:
            value = await look_up()
            # What was changed here meanwhile may have been looked up before the change.
            if value is not None and self._looking.get(key) is looking:
                self.remember(key, value)
            return value
        finally:
            if self._looking.get(key) is looking:
                del self._looking[key]

    def remember(self, key: Key, value: Value, seconds: float | None = None) -> None:
        """Believes a value from now on, for `seconds` or as long as any."""
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = (time.monotonic() + (self._seconds if seconds is None else seconds), value)

    def forget(self, key: Key) -> None:
        """Drops a value, and what is just being looked up: it was changed here."""
        self._known.pop(key, None)
        self._looking.pop(key, None)
