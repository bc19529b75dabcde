"""How often and how long a request is repeated. Arithmetic without I/O, for callers in threads and in event loops."""

import logging
import random
import time
from dataclasses import dataclass

from mqbroker_client.core import errors

log = logging.getLogger(__name__)

SHORTEST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
# Between two rounds of what asks for ever.
LONGEST_ROUND_PAUSE_SECONDS = 10.0

#: What passes: the broker is away, busy, or asks for a slower pace.
PASSING = (errors.Unreachable, errors.Unavailable, errors.RateLimited)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how long, pauses included, a request is repeated while the broker is away or busy.

    `seconds` is the deadline of all tries together. A try may use half of the time that is left, and the last try all
    of it: a server that took a request and fell silent leaves time to ask again.
    """

    tries: int = 5
    seconds: float = 10.0


DEFAULT_RETRY = Retry()
#: Of a half: RocketMQ's retryTimesWhenSendFailed (2 more) and sendMsgTimeout.
HALF_RETRY = Retry(tries=3, seconds=3.0)


class Tries:
    """The tries of one call, and the time that is left for them."""

    __slots__ = ("_give_up_at", "_limit", "_made", "_timeout_seconds", "_wait_seconds")

    def __init__(self, retry: Retry, *, timeout_seconds: float, wait_seconds: float = 0) -> None:
        self._limit = retry.tries
        self._made = 0
        self._timeout_seconds = timeout_seconds
        # How long the broker itself may hold the request; it comes on top of the limits.
        self._wait_seconds = wait_seconds
        self._give_up_at = time.monotonic() + retry.seconds + wait_seconds

    def begin(self) -> float:
        """The seconds that the try that begins now may take."""
        self._made += 1
        left = self._give_up_at - time.monotonic()
        waits = self._wait_seconds
        share = left if self._made >= self._limit else min(left, waits + max(left - waits, 0) / 2)
        return max(min(self._timeout_seconds + waits, share), 0.001)

    def pause_after(self, error: errors.BrokerError, what: str) -> float:
        """Delay in seconds before the next try after a transient failure. Re-raises it when no try is left."""
        pause = _pause_seconds(error, self._made)
        if self._made >= self._limit or time.monotonic() + pause >= self._give_up_at:
            raise error
        log.warning("%s: try %d of %d failed, the next in %.2f s: %s", what, self._made, self._limit, pause, error)
        return pause


def round_pause_seconds(failures: int) -> float:
    """How long to pause after so many failed rounds, one after the other, of what asks for ever."""
    return min(0.5 * 2.0 ** min(failures, 10), LONGEST_ROUND_PAUSE_SECONDS)


def _pause_seconds(error: errors.BrokerError, made: int) -> float:
    pause = error.retry_after_seconds
    if pause is None:
        pause = min(SHORTEST_PAUSE_SECONDS * 2 ** (made - 1), LONGEST_PAUSE_SECONDS)
    # Spread, so that the callers that were refused together do not come back together.
    return pause * random.uniform(1.0, 1.2)
