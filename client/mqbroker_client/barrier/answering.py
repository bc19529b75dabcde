"""A producer's regular work: answers due checks, sends kept messages, deletes old rows."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field

from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.kept import KeptMessages
from mqbroker_client.core.errors import GroupNotExist
from mqbroker_client.core.polling import CheckPoller
from mqbroker_client.core.producers import Producer

log = logging.getLogger(__name__)

PAUSE_SECONDS = 2.0
PURGE_EVERY_SECONDS = 3_600.0


@dataclass(slots=True)
class RegularWork:
    """The regular work: `once` for a scheduler, `run` for a separate process."""

    producer: Producer
    barrier: Barrier
    kept: KeptMessages
    _purge_at: float = field(default=0.0, init=False)

    def once(self, *, seconds: float = 30.0) -> int:
        """Answers due checks and sends kept messages, for about `seconds`; returns the number of answered checks.

        Raises BrokerError when the broker is away.
        """
        give_up_at = time.monotonic() + seconds
        answered = 0
        poller = CheckPoller(self.producer, self.barrier, wait_seconds=0)
        # The group does not exist, so there is no check. Kept messages may be the first messages of the group.
        with closing(poller), suppress(GroupNotExist):
            while (count := poller.answer_due()) and time.monotonic() < give_up_at:
                answered += count
            answered += count
        self.kept.send(seconds=max(give_up_at - time.monotonic(), 1.0))
        self._purge()
        return answered

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set. Failures are logged, and the work is tried again."""
        poller = CheckPoller(self.producer, self.barrier)
        poller.start()
        try:
            while not stop.wait(PAUSE_SECONDS):
                _logged(self.kept.send)
                _logged(self._purge)
        finally:
            poller.stop(timeout_seconds=10)

    def _purge(self) -> None:
        if time.monotonic() < self._purge_at:
            return
        self._purge_at = time.monotonic() + PURGE_EVERY_SECONDS
        self.barrier.purge()


def _logged(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:
        log.exception("kept messages or old rows are left for the next round")
