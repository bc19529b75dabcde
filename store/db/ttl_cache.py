"""Caches configuration for a moment in a process, so that the message path does not read it each time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_VALUES = 20_000


class TtlCache(Generic[Key, Value]):
    """Values by key, each valid for `seconds`. Concurrent requests for one key share one look-up.

    A key that is not found (None) is not cached: it may be created at any moment.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: dict[Key, tuple[float, Value]] = {}
        self._look_ups: dict[Key, asyncio.Future[Value | Exception | None]] = {}

    def known(self, key: Key) -> Value | None:
        """The cached value; None also where it has to be looked up."""
        cached = self._values.get(key)
        return cached[1] if cached is not None and cached[0] > time.monotonic() else None

    async def get(self, key: Key, look_up: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """The cached value, or else the value of a look-up."""
        cached = self.known(key)
        if cached is not None:
            return cached
        running = self._look_ups.get(key)
        if running is None:
            running = self._look_ups[key] = asyncio.ensure_future(self._look_up(key, look_up))
        # A caller that is cancelled leaves the look-up to the other callers.
        found = await asyncio.shield(running)
        if isinstance(found, Exception):
            raise found
        return found

    async def _look_up(self, key: Key, look_up: Callable[[], Awaitable[Value | None]]) -> Value | Exception | None:
        """The value, or what the look-up failed with: raised here, it is an error of no caller where all are gone."""
        running = asyncio.current_task()
        try:
            value = await look_up()
            # After `forget` the value may be older than the change.
            if value is not None and self._look_ups.get(key) is running:
                self.remember(key, value)
            return value
        except Exception as problem:  # noqa: BLE001  # whatever it is: the callers raise it
            return problem
        finally:
            if self._look_ups.get(key) is running:
                del self._look_ups[key]

    def remember(self, key: Key, value: Value, seconds: float | None = None) -> None:
        """Caches a value for `seconds`, by default for those of the cache."""
        if len(self._values) >= MAX_VALUES:
            self._values.clear()
        self._values[key] = (time.monotonic() + (self._seconds if seconds is None else seconds), value)

    def forget(self, key: Key) -> None:
        """Drops a value that was changed in this process, and ignores the result of a running look-up."""
        self._values.pop(key, None)
        self._look_ups.pop(key, None)

    def forget_all(self) -> None:
        """As `forget`, of every value."""
        self._values.clear()
        self._look_ups.clear()
