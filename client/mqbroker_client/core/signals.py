"""SIGTERM and SIGINT while a consumer runs: they stop it, and reach the program that it runs in, too."""

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
    """Calls `act` at SIGTERM and SIGINT where this is the main thread, and then the program's own handler.

    By such a handler a server stops that the consumer runs in (uvicorn), and a consumer that runs beside this one.
    Python's own ways to end a program at a signal are left out: the consumer ends by itself.
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
            # Where another one has come since, it calls this one, which does no harm any more.
            if signal.getsignal(number) is handler:
                signal.signal(number, before[number])


def _chained(act: Callable[[], object], before: Any) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        act()
        if callable(before) and not _ends_the_program(before):
            before(number, frame)

    return handle


def _ends_the_program(handler: Any) -> bool:
    """Whether it raises KeyboardInterrupt, or cancels the task that `asyncio.run` was given."""
    own = getattr(handler.func if isinstance(handler, functools.partial) else handler, "__self__", None)
    return handler is signal.default_int_handler or isinstance(own, asyncio.Runner)
