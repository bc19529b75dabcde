"""Waits for what happens by itself: asked again and again, with a deadline, and never longer than needed."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PAUSE_SECONDS = 0.02


def eventually(look: Callable[[], Found | None], within_seconds: float = 30.0) -> Found:
    """The first true value of `look`. Fails with its last value when the time is over."""
    deadline = time.monotonic() + within_seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {within_seconds:g} s; at last: {found!r}"
        time.sleep(PAUSE_SECONDS)
    return found
