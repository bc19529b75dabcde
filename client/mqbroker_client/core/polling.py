"""Answers checks in a thread, for producers that the broker cannot call."""

import threading
import time

from mqbroker_client.core.checking import Checking
from mqbroker_client.core.executor import ended

# The pause between two attempts of `stop` to end the request of a thread, which may just have begun it.
STOP_PAUSE_SECONDS = 0.05


class CheckPoller(Checking):
    """A thread that fetches due checks and answers them, for producers that the broker cannot call."""

    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread; further calls do nothing."""
        if self._thread is not None:
            raise RuntimeError("a poller of checks is started once")
        self._thread = threading.Thread(target=self._run, name=f"checks of {self.producer.group}", daemon=True)
        self._thread.start()

    def stop(self, *, timeout_seconds: float | None = None) -> None:
        """Ends the long poll, and stops when the current check, if there is one, is answered.

        The broker asks later about checks that were fetched but not begun.
        """
        self._stopping.set()
        give_up_at = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while self._thread and self._thread.is_alive() and (give_up_at is None or time.monotonic() < give_up_at):
            if not self._answering:
                self._line.hang_up()
            self._thread.join(STOP_PAUSE_SECONDS)
        ended(list(self._handed), None if give_up_at is None else max(give_up_at - time.monotonic(), 0))
        self._line.close()

    def close(self) -> None:
        """Closes the connection of a poller that was never started."""
        self._line.close()
