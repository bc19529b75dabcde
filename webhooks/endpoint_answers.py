"""The answer to a call, in a form that can be stored and decided upon."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

Outcome = Literal["answered", "timeout", "refused", "forbidden_address", "too_large", "tls", "protocol"]

MAX_REASON_CHARACTERS = 200
MAX_LOCATION_CHARACTERS = 80
# Statuses that a framework or proxy answers before the server's own function runs.
WAYS_OUT = {
    401: "its server wants a login: let requests through that bear the webhook's signature",
    403: "its server refused the request itself; in Django, mark the view csrf_exempt",
    404: "nothing is served at this path; register the URL at which checks are answered",
    405: "this path takes no POST; register the URL at which checks are answered",
    413: "its server takes no request this large, not even without bodies; raise its limit",
}
# By Standard Webhooks a server accepts a signature for five minutes by its own clock. A server answers these statuses
# when it refuses a signature.
CLOCK_SECONDS = 240.0
REFUSES_SIGNATURES = (400, 401, 403)
# The longest `Retry-After` that counts: a day is longer than any maintenance, and a year would stop all checks.
MAX_RETRY_AFTER_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one call.

    `answered`: a complete answer, with any status. `timeout`: the deadline passed. `refused`: no connection (refused,
    unreachable, unknown name). `forbidden_address`: the broker may call none of the addresses. `too_large`: more bytes
    than allowed. `tls`: no trusted connection. `protocol`: connected, but without a complete HTTP answer.
    """

    outcome: Outcome
    #: Whether a check counts (semantics 4.3): the request was written to a connection, and the server did not hang up
    #: in the middle of it.
    asked: bool
    #: One sentence for the history, printable, at most 200 characters.
    reason: str
    latency_ms: float
    #: The status is known when the headers were received, so also with `too_large`, or with a `timeout` within the
    #: body.
    status: int | None = None
    #: The whole body, not decoded; empty unless `answered`.
    body: bytes = b""
    #: From the `Retry-After` of a 429 or 503, at most a day.
    retry_after_seconds: float | None = None
    #: Whether only the beginning of the request was written to the connection, and not its end.
    cut: bool = False
    #: The URL to which the answer redirects.
    location: str | None = None
    #: The seconds by which the server's clock is ahead of the signature's time, from the answer's `Date`; None without
    #: it.
    ahead_seconds: float | None = None

    @property
    def payload_refused(self) -> bool:
        """Whether the request was too large: the server answered 413, or closed the connection during the request."""
        return self.status == 413 or (self.outcome == "protocol" and self.cut)

    @property
    def is_gone(self) -> bool:
        """Whether the server answered 410 and wants no more calls. `endpoint_health` then disables the endpoint."""
        return self.status == 410

    @property
    def ok(self) -> bool:
        """Whether the answer is complete and has a 2xx status, whatever its body."""
        return self.outcome == "answered" and self.status is not None and 200 <= self.status < 300


def way_out(answer: Answer) -> str | None:
    """The advice to an operator about an answer (3xx, 401, 403, 404, 405, 413) that no check function has sent."""
    status = answer.status or 0
    if status in REFUSES_SIGNATURES and abs(ahead := answer.ahead_seconds or 0.0) > CLOCK_SECONDS:
        off = f"{abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the database's"
        return f"The endpoint answered {status}: its clock is {off}, so that it takes no signature: run an NTP client."
    if 300 <= status < 400:
        to = f" to {sentence(answer.location)[:MAX_LOCATION_CHARACTERS]}" if answer.location else ""
        return f"The endpoint redirected with {status}{to}: register the exact URL, with or without its last slash."
    return f"The endpoint answered {status}: {WAYS_OUT[status]}." if status in WAYS_OUT else None


def sentence(text: str) -> str:
    """The text of an outside server as one line that is safe in a log, on a page and in a PostgreSQL text column."""
    line = "".join(character if character.isprintable() else " " for character in text[: 4 * MAX_REASON_CHARACTERS])
    line = " ".join(line.split())
    return line if len(line) <= MAX_REASON_CHARACTERS else line[: MAX_REASON_CHARACTERS - 1] + "…"


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """Seconds to wait by a `Retry-After` header, which holds seconds or a date (RFC 9110, 10.2.3); None if neither."""
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit():
        return min(float(header[:20]), MAX_RETRY_AFTER_SECONDS)
    ahead = ahead_seconds(header, now)
    return None if ahead is None else min(max(ahead, 0.0), MAX_RETRY_AFTER_SECONDS)


def ahead_seconds(header: str | None, now: datetime) -> float | None:
    """Seconds by which the time in a header such as `Date` is ahead of `now`; None without a valid time."""
    try:
        at = parsedate_to_datetime(header or "")
        return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
