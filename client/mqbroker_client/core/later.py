"""Calls for which no thread waits: a background thread sends them, several together if several are waiting."""

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from mqbroker_client.core import forks
from mqbroker_client.core.calls import Call
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.parts import Part, taken
from mqbroker_client.core.retries import PASSING

log = logging.getLogger(__name__)

#: For how many seconds the end of the program, or `close` of a broker, waits for calls that are not sent yet.
LATER_SECONDS = 3.0
#: The maximum number of waiting calls while the broker is away. Beyond it, an end is left to a check, and a message is
#: lost.
MOST_WAITING = 10_000

_all: "WeakSet[Later]" = WeakSet()


class Later:
    """The calls that wait to be sent, and the thread that sends them, which is started with the first call."""

    def __init__(
        self, alone: Callable[[Call[Any]], object], together: Callable[[Sequence[Call[Any]]], Sequence[object]] | None
    ) -> None:
        self._alone = alone
        #: How calls are sent together; None: each call is sent alone.
        self._together = together
        #: The number of calls that were not sent or were refused since the program began.
        self.lost = 0
        self.leave_to_parent()
        forks.remember(self)
        _all.add(self)

    def leave_to_parent(self) -> None:
        """Drops the waiting calls in a forked child, because the parent sends them."""
        self._changed = threading.Condition()
        self._waiting: deque[Part] = deque()
        self._sending = False
        self._thread: threading.Thread | None = None

    def add(self, call: Call[Any]) -> None:
        """Adds a call to be sent. If too many calls wait already, the call is lost, with a log entry."""
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
        """Waits until no call is left. Returns whether none was left within the time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._sending, timeout_seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting))
                together = [each.call for each in taken(self._waiting)]
                self._sending = True
            try:
                self._send(together)
            except BrokerError as error:
                self._lose(together, error)
            finally:
                with self._changed:
                    self._sending = False
                    self._changed.notify_all()

    def _send(self, calls: Sequence[Call[Any]]) -> None:
        """Sends the calls together; a call for which the broker was too busy is then sent alone.

        Raises the error of the request.
        """
        together = self._together if len(calls) > 1 else None
        results = together(calls) if together else [None] * len(calls)
        for call, result in zip(calls, results, strict=True):
            try:
                if together is None or isinstance(result, PASSING):
                    self._alone(call)
                elif isinstance(result, BrokerError):
                    raise result
            except Exception as error:  # noqa: BLE001 a hook that forbids a call may raise any error
                self._lose([call], error)

    def _lose(self, lost: Sequence[Call[Any]], error: Exception) -> None:
        self.lost += len(lost)
        fates = ", ".join(sorted({fate(call) for call in lost}))
        log.warning("%s not sent (%s): %s", "1 call was" if len(lost) == 1 else f"{len(lost)} calls were", fates, error)


def fate(call: Call[Any]) -> str:
    """What happens to a call that is not sent, as text."""
    return "a check decides" if call.what.endswith("/end") else "the message is lost"


@atexit.register
def _flush() -> None:
    give_up_at = time.monotonic() + LATER_SECONDS
    for later in list(_all):
        later.flush(max(give_up_at - time.monotonic(), 0))
