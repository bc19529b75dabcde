"""An outage of the broker: what this process knows about it, and which transaction tries the broker again."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mqbroker_client.core import forks
from mqbroker_client.core.retries import HALF_RETRY, Retry

#: Pauses between two transactions that try an absent broker: the first pause, which doubles, and the longest pause.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
#: How many seconds a transaction may spend on trying to reach an absent broker. Its caller waits meanwhile.
PROBE_RETRY = Retry(tries=1, seconds=1.0)


@dataclass(slots=True, weakref_slot=True, eq=False)
class Outage:
    """The outage, shared by the threads of a process. While the broker is away, one transaction per pause tries it."""

    clock: Callable[[], float] = time.monotonic
    #: The pause between two transactions that try the broker; None while the broker can be reached.
    _pause_seconds: float | None = field(default=None, init=False)
    _ask_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        forks.remember(self)

    def leave_to_parent(self) -> None:
        """Replaces the lock in a forked child, because a thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    @property
    def lasts(self) -> bool:
        """Whether the broker could not be reached at the last attempt."""
        return self._pause_seconds is not None

    def turn(self) -> Retry | None:
        """The attempts with which this transaction may try the broker; None: it keeps its messages without a try."""
        if self._pause_seconds is None:
            return HALF_RETRY
        with self._lock:
            now = self.clock()
            if self._pause_seconds is None or now < self._ask_at:
                return HALF_RETRY if self._pause_seconds is None else None
            # While this transaction tries the broker, and during the following pause if it fails, other transactions
            # keep their messages at once.
            self._ask_at = now + PROBE_RETRY.seconds + self._pause_seconds
        return PROBE_RETRY

    def goes_on(self, asked: Retry) -> bool:
        """Notes a failed try of the broker with the turn `asked`; returns whether the broker could be reached before.

        Transactions that tried at the same time, before the outage was known, do not lengthen the pause.
        """
        with self._lock:
            is_new = self._pause_seconds is None
            if self._pause_seconds is None:
                self._pause_seconds = FIRST_PAUSE_SECONDS
            elif asked is PROBE_RETRY:
                self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
            self._ask_at = self.clock() + self._pause_seconds
        return is_new

    def is_over(self) -> None:
        """Notes that the broker has answered."""
        self._pause_seconds = None
