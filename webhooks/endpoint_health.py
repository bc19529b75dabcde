"""The health of an endpoint: how each answer changes it, and when the endpoint may be called again. An answer 410
disables the endpoint. The functions are pure: the time, by the database's clock, is an argument. All workers share the
state, which is in columns of a row.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from webhooks.endpoint_answers import Answer

State = Literal["healthy", "open", "half_open", "disabled"]

FAILURES_TO_OPEN = 5
FIRST_OPEN_SECONDS = 5.0
MAX_OPEN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Circuit:
    """The health of one endpoint.

    healthy ──5 failures in a row, or Retry-After──▶ open      not called before `open_until`
       ▲                                              │ ▲
       │                                   one probe  │ │ it fails: open twice as long, up to 5 minutes
       └──────────────any success──────── half_open ◀─┘─┘      others wait for the probe, until `open_until`
    any ──410 Gone──▶ disabled                                 until an operator stores a new `Circuit()`
    """

    state: State = "healthy"
    #: The number of consecutive failed calls. Calls that had begun before the circuit opened do not count.
    failures: int = 0
    #: The endpoint is not called before this time. In `half_open`: the time when the probe must have ended, so that the
    #: endpoint is called again even if a worker dies during the probe. None when healthy or disabled.
    open_until: datetime | None = None

    def may_call(self, now: datetime) -> bool:
        """Whether a call may begin.

        Unless healthy, the caller must first store the result of `probing` by a compare-and-set, in which only one
        process succeeds.
        """
        return self.state != "disabled" and (self.open_until is None or now >= self.open_until)

    def probing(self, now: datetime, claim_seconds: float) -> "Circuit":
        """The state to store before a call that `may_call` allows; the same state when healthy.

        `claim_seconds` is the longest time of the call plus the time to store its outcome.
        """
        if self.state in ("healthy", "disabled"):
            return self
        return replace(self, state="half_open", open_until=now + timedelta(seconds=claim_seconds))

    def after(self, now: datetime, answer: Answer) -> "Circuit":
        """The state after a call. A 2xx answer is a success."""
        return self.after_success(now) if answer.ok else self.after_failure(now, answer)

    def after_success(self, now: datetime) -> "Circuit":
        """The state after a success: healthy. A disabled endpoint stays disabled, because the success may be older."""
        return self if self.state == "disabled" else Circuit()

    def after_failure(self, now: datetime, answer: Answer) -> "Circuit":
        """The state after a failed call, whether or not the request was written."""
        if self.state == "disabled":
            return self
        if answer.is_gone:
            return Circuit("disabled", self.failures + 1)
        retry_after = answer.retry_after_seconds or 0.0
        if self.state == "open" and not self.may_call(now):
            return self._not_before(now, retry_after)
        failures = self.failures + 1
        opens = self.state != "healthy" or failures >= FAILURES_TO_OPEN
        wait = max(open_seconds(failures) if opens else 0.0, retry_after)
        return Circuit("open", failures, now + timedelta(seconds=wait)) if wait else Circuit("healthy", failures)

    def _not_before(self, now: datetime, seconds: float) -> "Circuit":
        """The state after a failure of a call that had begun before the circuit opened: only `open_until` may change,
        to a later time.
        """
        later = now + timedelta(seconds=seconds)
        return self if self.open_until and later <= self.open_until else replace(self, open_until=later)


def open_seconds(failures: int) -> float:
    """The seconds for which a circuit is open after failures in a row: 5 s, doubled by a failed probe, up to 300 s."""
    doublings = min(max(failures - FAILURES_TO_OPEN, 0), 16)
    return min(FIRST_OPEN_SECONDS * 2.0**doublings, MAX_OPEN_SECONDS)
