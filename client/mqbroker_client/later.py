"""Calls that no thread waits for: a thread of their own sends them, together where several have come."""

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from mqbroker_client import forks
from mqbroker_client.calls import Call
from mqbroker_client.errors import BrokerError
from mqbroker_client.parts import Part, taken

log = logging.getLogger(__name__)

#: How long the end of a program, or of a broker's use, waits for what was not sent yet.
LATER_SECONDS = 3.0
#: So many may wait while the broker is away. An end that comes above is left to a check, and a message is lost.
MOST_WAITING = 10_000

_all: "WeakSet[Later]" = WeakSet()


class Later:
    """What waits to be sent, and the thread that sends it, which is made with the first call."""

    def __init__(self, send: Callable[[Sequence[Call[Any]]], None]) -> None:
        self._send = send
        #: The calls that were not sent, or refused, since the program began.
        self.lost = 0
        self.leave_to_parent()
        forks.remember(self)
        _all.add(self)

    def leave_to_parent(self) -> None:
        """In a forked child: the parent sends what it has."""
        self._changed = threading.Condition()
        self._waiting: deque[Part] = deque()
        self._sending = False
        self._thread: threading.Thread | None = None

    def add(self, call: Call[Any]) -> None:
        """Have a call sent. Without room for it, that is logged."""
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                self.lost += 1
                log.warning("%d calls wait already, %s is not sent: %s", MOST_WAITING, call.what, fate(call))
                return
            self._waiting.append(Part(call))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="mqbroker later", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until nothing is left; whether that was in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout_seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                together = taken(self._waiting)
                self._sending = True
            try:
                self._send([each.call for each in together])
            except BrokerError as error:
                self.lost += len(together)
                fates = ", ".join(sorted({fate(each.call) for each in together}))
                calls = "1 call was" if len(together) == 1 else f"{len(together)} calls were"
                log.warning("%s not sent (%s): %s", calls, fates, error)
            finally:
                with self._changed:
                    self._sending = False
                    self._changed.notify_all()


def fate(call: Call[Any]) -> str:
    """What becomes of a call that is not sent."""
    return "a check decides" if call.what.endswith("/end") else "the message is lost"


@atexit.register
def _flush() -> None:
    give_up_at = time.monotonic() + LATER_SECONDS
    for later in list(_all):
        later.flush(max(give_up_at - time.monotonic(), 0))
