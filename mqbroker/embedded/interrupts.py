"""Interrupts: Ctrl-C, SIGTERM and a closed terminal, which interrupt a start and wake a loop."""

import os
import select
import signal
from types import FrameType, TracebackType
from typing import Self

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal to stop during a start."""


class Interrupts:
    """A context that counts signals. Until `hold` is called, a signal interrupts the running code.

    After `hold` a signal only wakes `wait`; the end of a child process wakes `wait`, too. Only for the main thread.
    """

    def __init__(self) -> None:
        self.count = 0
        self._held = False
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for number in STOPPING:
            signal.signal(number, self._note)
        # Python writes a signal into the pipe only if a Python handler is set for the signal.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        for number in (*STOPPING, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.close(self._woken)
        os.close(self._waker)

    def hold(self) -> None:
        """From now on signals are only counted, and interrupt no code."""
        self._held = True

    def wait(self, seconds: float) -> None:
        """Sleeps until a signal or the end of a child process, at most `seconds`."""
        select.select([self._woken], [], [], seconds)
        try:
            os.read(self._woken, 4096)
        except BlockingIOError:
            return

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if not self._held:
            raise Interrupted
