"""Waits for /readyz at a start, as long as the web process lives and the database answers."""

import http.client
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from mqbroker.embedded.waiting import Announcer, Say

# Consecutive deaths after which the wait gives up on a process.
DEATHS_AT_START = 3
PROBE_SECONDS = 2
# Pause between two direct connections to the database, in addition to /readyz.
ASK_SECONDS = 5
# Time without a database session after which the wait gives up. On an idle machine a session takes milliseconds.
SILENT_SECONDS = 60
# Time after which the wait gives up on other reasons of /readyz, which do not pass by themselves: tables of another
# version, or a server that loses commits.
STATED_SECONDS = 10


@dataclass(frozen=True)
class Probe:
    """The answer of /readyz; the status is 0 when no answer came in time."""

    status: int
    reasons: list[str] = field(default_factory=list)

    @property
    def blames_database(self) -> bool:
        """Whether the only problem is that the database does not answer."""
        return all("does not answer" in reason for reason in self.reasons)


def probe(port: int) -> Probe:
    """Calls /readyz on this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        body = answer.read()
        return Probe(answer.status, list(json.loads(body).get("reasons", [])) if answer.status == 503 else [])
    except (OSError, ValueError, http.client.HTTPException):
        return Probe(0)
    finally:
        connection.close()


def answers(database_url: str) -> bool:
    """Whether a database server opens a session, or answers with a reason why not."""
    try:
        psycopg.connect(database_url, connect_timeout=PROBE_SECONDS).close()
    except psycopg.OperationalError as problem:
        return "FATAL" in str(problem)
    return True


class Readiness:
    """A wait for /readyz. `failure` is the reason why the wait gave up, or empty."""

    def __init__(
        self,
        port: int,
        deaths: Callable[[], int],
        database_answers: Callable[[], bool],
        say: Say,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._port = port
        self._deaths = deaths
        self._database_answers = database_answers
        self._now = now
        self._announcer = Announcer(say, now)
        # When /readyz gave the present reason for the first time; None if /readyz gives no reason.
        self._stated_since: float | None = None
        self._silent_since: float | None = None
        self._asked_at = now()
        self.is_ready = False
        self.failure = ""

    def is_settled(self) -> bool:
        """Probes once; returns whether the wait is over. The caller repeats it until then."""
        found = probe(self._port)
        self.is_ready = found.status == 200
        if self._deaths() >= DEATHS_AT_START:
            self.failure = f"it ended {DEATHS_AT_START} times"
        elif not self.is_ready:
            self._look(found)
            self._announcer.still(self._state(found))
        return self.is_ready or bool(self.failure)

    def _look(self, found: Probe) -> None:
        """Decides whether to continue waiting: yes while the process lives and the database answers."""
        now = self._now()
        states = found.status != 0 and not (found.reasons and found.blames_database)
        self._stated_since = (self._stated_since or now) if states else None
        if states:
            self._silent_since = None
        elif now - self._asked_at >= ASK_SECONDS:
            self._asked_at = now
            self._silent_since = None if self._database_answers() else (self._silent_since or now)
        if self._stated_since is not None and now - self._stated_since >= STATED_SECONDS:
            self.failure = f"/readyz answers {found.status}: {'; '.join(found.reasons) or 'no reason'}"
        elif self._silent_since is not None and now - self._silent_since >= SILENT_SECONDS:
            self.failure = f"the database has not answered for {SILENT_SECONDS} s"

    def _state(self, found: Probe) -> str:
        if found.status == 0:
            return "Waiting for the web process, which runs and does not answer yet"
        return f"Waiting for /readyz, which answers {found.status}: {'; '.join(found.reasons) or 'no reason'}"
