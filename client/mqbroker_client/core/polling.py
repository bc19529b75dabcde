"""Checks for producers that the broker cannot call, answered by a thread."""

import threading
import time

from mqbroker_client.core.checking import Checking
from mqbroker_client.core.executor import ended

# Between two looks of `stop` at a thread that may just have begun its request.
STOP_PAUSE_SECONDS = 0.05


class CheckPoller(Checking):
    """A thread that fetches due checks and answers them, for producers that the broker cannot call."""

    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread of its own, once."""
        if self._thread is not None:
            raise RuntimeError("a poller of checks is started once")
        self._thread = threading.Thread(target=self._run, name=f"checks of {self.producer.group}", daemon=True)
        self._thread.start()

    def stop(self, *, timeout_seconds: float | None = None) -> None:
        """End the long poll, and stop when the check under way, if there is one, is answered.

        Checks that were fetched with it and not begun are asked again later.
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
        """For a poller that was never started: closes its connection."""
        self._line.close()
