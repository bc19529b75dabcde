"""How often and for how long a request is repeated. Computes without I/O, for threads and for event loops."""

import logging
import random
import time
from dataclasses import dataclass

from mqbroker_client.core import errors

log = logging.getLogger(__name__)

SHORTEST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
# The longest pause between two attempts of a loop that asks without end.
LONGEST_ROUND_PAUSE_SECONDS = 10.0

#: Temporary errors: the broker is away, busy, or asks for a slower pace.
PASSING = (errors.Unreachable, errors.Unavailable, errors.RateLimited)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and for how long including pauses, a request is repeated while the broker is away or busy.

    `seconds` is the deadline of all attempts together. An attempt may use half of the remaining time, the last attempt
    all of it: so there is time for another attempt if a server accepts a request and does not answer.
    """

    tries: int = 5
    seconds: float = 10.0


DEFAULT_RETRY = Retry()
#: The attempts of a half message: RocketMQ's retryTimesWhenSendFailed (2 more attempts) and sendMsgTimeout.
HALF_RETRY = Retry(tries=3, seconds=3.0)


class Tries:
    """The attempts of one call, and the time that remains for them."""

    __slots__ = ("_give_up_at", "_limit", "_made", "_timeout_seconds", "_wait_seconds")

    def __init__(self, retry: Retry, *, timeout_seconds: float, wait_seconds: float = 0) -> None:
        self._limit = retry.tries
        self._made = 0
        self._timeout_seconds = timeout_seconds
        # How long the broker itself may hold the request; it is added to the time limits.
        self._wait_seconds = wait_seconds
        self._give_up_at = time.monotonic() + retry.seconds + wait_seconds

    def begin(self) -> float:
        """Begins an attempt. Returns the seconds that it may take."""
        self._made += 1
        left = self._give_up_at - time.monotonic()
        waits = self._wait_seconds
        share = left if self._made >= self._limit else min(left, waits + max(left - waits, 0) / 2)
        return max(min(self._timeout_seconds + waits, share), 0.001)

    def pause_after(self, error: errors.BrokerError, what: str) -> float:
        """The seconds to wait before the next attempt after a temporary failure.

        Raises the error again when no attempt is left.
        """
        pause = _pause_seconds(error, self._made)
        if self._made >= self._limit or time.monotonic() + pause >= self._give_up_at:
            raise error
        log.warning("%s: try %d of %d failed, the next in %.2f s: %s", what, self._made, self._limit, pause, error)
        return pause


def round_pause_seconds(failures: int) -> float:
    """The seconds to pause after a number of consecutive failures, for a loop that asks without end."""
    return min(0.5 * 2.0 ** min(failures, 10), LONGEST_ROUND_PAUSE_SECONDS)


def _pause_seconds(error: errors.BrokerError, made: int) -> float:
    pause = error.retry_after_seconds
    if pause is None:
        pause = min(SHORTEST_PAUSE_SECONDS * 2 ** (made - 1), LONGEST_PAUSE_SECONDS)
    # Random, so that callers that were refused at the same time do not return at the same time.
    return pause * random.uniform(1.0, 1.2)
