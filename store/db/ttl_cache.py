"""Caches of a process: values of the configuration, kept for seconds so that not every request reads them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_VALUES = 20_000
# In the last quarter of a value's time a request gets the value and starts a new look-up, without waiting for it.
RENEWED_PART = 4
# How long topics and groups are cached: without a notice, a change by another process takes effect here after this
# time.
CONFIGURATION_SECONDS = 2.0


class Cached(NamedTuple, Generic[Value]):
    """A cached value, when the value is to be renewed, when it expires, when it was looked up, and the function that
    looks it up.
    """

    renewed_from: float
    until: float
    found_at: float
    value: Value
    look_up: Callable[[], Awaitable[Value | None]]


class TtlCache(Generic[Key, Value]):
    """Values by key, each valid for `seconds`, a number or a function of the value.

    Concurrent requests for one key share one look-up. The time counts from the start of the look-up, so a value is
    never older than `seconds`. With `since_answer` it counts from the end, for values that change all the time, where a
    slow look-up is still useful. A missing value (None) is not cached, because the object may be created at any moment.
    """

    def __init__(
        self,
        seconds: float | Callable[[Value], float],
        clock: Callable[[], float] = time.monotonic,
        *,
        since_answer: bool = False,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since_answer = since_answer
        self._values: dict[Key, Cached[Value]] = {}
        self._look_ups: dict[Key, asyncio.Future[Value | Exception | None]] = {}

    def known(self, key: Key) -> Value | None:
        """The cached value; None if it must be looked up. For use in the event loop.

        Shortly before a value expires, a look-up is started in the background, because a request that finds no value
        needs a task.
        """
        cached = self._values.get(key)
        if cached is None:
            return None
        now = self._clock()
        if now >= cached.renewed_from:
            if now >= cached.until:
                return None
            if key not in self._look_ups:
                self._look_ups[key] = asyncio.ensure_future(self._look_up(key, cached.look_up))
        return cached.value

    async def get(self, key: Key, look_up: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """The cached value; if there is none, the value that a look-up finds."""
        cached = self._values.get(key)
        if cached is not None and self._clock() < cached.until:
            return cached.value
        running = self._look_ups.get(key)
        if running is None:
            running = self._look_ups[key] = asyncio.ensure_future(self._look_up(key, look_up))
        # When a caller is cancelled, the look-up continues for other callers.
        found = await asyncio.shield(running)
        if isinstance(found, Exception):
            raise found
        return found

    async def _look_up(self, key: Key, look_up: Callable[[], Awaitable[Value | None]]) -> Value | Exception | None:
        """The value that the look-up finds, or its exception, which is not raised: all callers may be cancelled."""
        running = asyncio.current_task()
        began = self._clock()
        try:
            value = await look_up()
            # If `forget` was called during the look-up, the value may be older than the change, and is not cached.
            if self._look_ups.get(key) is running:
                self._remember(key, value, look_up, self._clock() if self._since_answer else began)
            return value
        except Exception as problem:  # noqa: BLE001  # the callers raise it, whatever it is
            return problem
        finally:
            if self._look_ups.get(key) is running:
                del self._look_ups[key]

    def _remember(
        self, key: Key, value: Value | None, look_up: Callable[[], Awaitable[Value | None]], now: float
    ) -> None:
        if value is None:
            self._values.pop(key, None)
            return
        if len(self._values) >= MAX_VALUES:
            self._values.clear()
        seconds = self._seconds(value) if callable(self._seconds) else self._seconds
        before = self._values.get(key)
        # A look-up may return the value of `last` again: this value keeps the time at which it was found.
        found_at = before.found_at if before is not None and before.value is value else now
        self._values[key] = Cached(now + seconds - seconds / RENEWED_PART, now + seconds, found_at, value, look_up)

    def last(self, key: Key, seconds: float) -> Value | None:
        """The value that was found last, at most this number of seconds ago; None if it was dropped."""
        cached = self._values.get(key)
        return None if cached is None or self._clock() - cached.found_at > seconds else cached.value

    def forget(self, key: Key) -> None:
        """Drops a value that was changed in this process, and ignores the result of a running look-up."""
        self._values.pop(key, None)
        self._look_ups.pop(key, None)

    def forget_all(self) -> None:
        """Drops all values, and ignores the results of running look-ups."""
        self._values.clear()
        self._look_ups.clear()
