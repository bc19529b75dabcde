"""A broker inside the process, for `Producer`, `Consumer` and `CheckPoller`, with a clock that a test can move.

The project's tests compare it with the real broker. It has no filters, recalls or pushes, and raises
NotImplementedError for other calls: test these with a real broker. Only the real broker checks the rules for tags,
keys, properties and sizes: a message that breaks them is accepted here.
"""

import copy
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mqbroker_client.contrib.testing.groups import Groups
from mqbroker_client.contrib.testing.topics import Topics
from mqbroker_client.contrib.testing.transactions import Transactions
from mqbroker_client.core import errors
from mqbroker_client.core.calls import Call, Result
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.documents import Document
from mqbroker_client.core.hooks import Hook
from mqbroker_client.core.retries import Retry

log = logging.getLogger(__name__)

#: Seconds between two looks of a long poll, because a delay may end without a call.
LOOK_SECONDS = 0.05

Answerer = Callable[..., Document]


@dataclass(slots=True)
class Clock:
    """The broker's clock, which can be moved."""

    moved: timedelta = field(default_factory=timedelta)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.moved


class MemoryBroker(Broker):
    """The broker inside the process. Pass it to the client's classes instead of a `Broker`.

    Safe to share between threads.
    """

    def __init__(self, *, hooks: Sequence[Hook] = ()) -> None:
        super().__init__("http://memory.invalid", "memory", coalescing=False, hooks=hooks)
        self._changed = threading.Condition()
        self._clock = Clock()
        self._hung_up = 0
        self._is_away = threading.Event()
        self._topics = Topics(self.now)
        self._transactions = Transactions(self._topics, self.now)
        self._groups = Groups(self._topics, self.now)
        self._routes: dict[str, Answerer] = {
            r"POST /v1/messages": self._topics.send,
            r"POST /v1/messages/batch": self._topics.send_batch,
            r"POST /v1/transactions": self._transactions.begin,
            r"POST /v1/transactions/([^/]+)/end": self._transactions.end,
            r"GET /v1/transactions/([^/]+)": self._transactions.read,
            r"POST /v1/producer-groups/([^/]+)/checks/receive": self._transactions.receive_checks,
            r"POST /v1/consumer-groups/([^/]+)/receive": self._groups.receive,
            r"POST /v1/consumer-groups/([^/]+)/(ack|nack|return|extend)": self._groups.settle,
            r"GET /v1/consumer-groups/([^/]+)": self._groups.read,
            r"PUT /v1/consumer-groups/([^/]+)": self._groups.put,
            r"PUT /v1/topics/([^/]+)": self._topics.put,
        }

    def now(self) -> datetime:
        """The broker's clock."""
        return self._clock.now()

    def advance(self, seconds: float) -> None:
        """Move the broker's clock forward, so that delays, invisible times and immunities end without a sleep."""
        with self._changed:
            self._clock.moved += timedelta(seconds=seconds)
            self._changed.notify_all()

    @contextmanager
    def away(self) -> Iterator[None]:
        """A block in which the broker cannot be reached: each call raises `Unreachable` at once, without another try.

        Long polls of other threads end with `Unreachable`, too. Stored messages stay.
        """
        with self._changed:
            self._is_away.set()
            self._changed.notify_all()
        try:
            yield
        finally:
            self._is_away.clear()

    def _do(self, call: Call[Result], retry: Retry | None = None) -> Result:
        """The result of a call, in this thread. A long poll waits for a message, or for `hang_up`."""
        give_up_at = time.monotonic() + call.wait_seconds
        with self._changed:
            hung_up = self._hung_up
            while True:
                if self._is_away.is_set():
                    raise errors.Unreachable(f"{call.what}: the broker of tests is away", code="unreachable")
                self._topics.release_due()
                document = self._answer(call)
                left = give_up_at - time.monotonic()
                # An empty answer does not end the long poll before its time is over.
                if any(document.get(name) for name in ("messages", "transactions")) or left <= 0:
                    break
                self._changed.wait(min(left, LOOK_SECONDS))
                if hung_up != self._hung_up:
                    raise errors.Unreachable(f"{call.what} was ended by hang_up", code="unreachable")
            self._changed.notify_all()
        # Copied through JSON as over HTTP, so that the answer shares no object with the stored data.
        return call.read(json.loads(json.dumps(document)))

    def do_all(self, calls: Sequence[Call[Result]], *, retry: Retry | None = None) -> list[Result | errors.BrokerError]:
        """Makes the calls one after the other."""
        results: list[Result | errors.BrokerError] = []
        for call in calls:
            try:
                results.append(self.do(call))
            except errors.BrokerError as error:
                results.append(error)
        return results

    def do_later(self, call: Call[Any]) -> None:
        """Makes the call at once. A refusal is only logged, as with a real broker."""
        try:
            self.do(call)
        except Exception as error:  # noqa: BLE001 a hook that forbids a call may raise any error
            log.warning("%s was refused: %s", call.what, error)

    def apart(self) -> "MemoryBroker":
        """The same broker, whose `hang_up` ends only its own long polls."""
        return copy.copy(self)

    def hang_up(self) -> None:
        """End the long polls that other threads have under way: each raises `Unreachable`."""
        with self._changed:
            self._hung_up += 1
            self._changed.notify_all()

    def close(self, *, timeout_seconds: float = 0) -> None:
        """Nothing is open."""

    def _answer(self, call: Call[Any]) -> Document:
        for pattern, answer in self._routes.items():
            if found := re.fullmatch(pattern, f"{call.method} {call.target}"):
                return answer(*found.groups(), **json.loads(call.content or b"{}"))
        raise NotImplementedError(f"the broker of tests has no {call.what}: use a real one")
