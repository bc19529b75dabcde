"""SIGTERM and SIGINT while a consumer runs: they stop the consumer, and also reach the program in which it runs."""

import asyncio
import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def heard(act: Callable[[], object]) -> Iterator[None]:
    """Calls `act` at SIGTERM and SIGINT if this is the main thread, and then the program's own handler.

    The program's own handler stops, for example, the server in which the consumer runs (uvicorn), or another consumer.
    Python's default handlers, which end the program, are not called, because the consumer ends by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    own = {number: _chained(act, signal.getsignal(number)) for number in NUMBERS}
    before = {number: signal.signal(number, handler) for number, handler in own.items()}
    try:
        yield
    finally:
        for number, handler in own.items():
            # If another handler has been set since then, it may call this handler, which then does nothing.
            if signal.getsignal(number) is handler:
                signal.signal(number, before[number])


def _chained(act: Callable[[], object], before: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        act()
        if callable(before) and not _ends_the_program(before):
            before(number, frame)

    return handle


def _ends_the_program(handler: Any) -> bool:
    """Whether the handler raises KeyboardInterrupt, or cancels the task of `asyncio.run`."""
    own = getattr(handler.func if isinstance(handler, functools.partial) else handler, "__self__", None)
    return handler is signal.default_int_handler or isinstance(own, asyncio.Runner)
