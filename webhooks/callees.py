"""Callees: the servers that the broker calls, with the health in their rows.

All processes share the rows. Endpoints and subscriptions have the same columns of health, and each app has its own
statements for them.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol, Self, cast

import structlog

from store.db import connections, sealing
from store.db.sealing import SecretUnreadable
from store.db.statements import Statement
from webhooks.endpoint_answers import Answer
from webhooks.endpoint_health import Circuit, State

logger = structlog.stdlib.get_logger(__name__)

# For this time after a rotation the old and the new secret both sign each call.
ROTATION_HOURS = 24
# Time after a probe's call in which its outcome is written.
PROBE_MARGIN_SECONDS = 5.0


class CalleeRow(Protocol):
    """The columns of a callee's row. `previous_secret` is null unless it still signs at the time `now`."""

    @property
    def id(self) -> int: ...
    @property
    def url(self) -> str: ...
    @property
    def max_batch(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def secret(self) -> str: ...
    @property
    def previous_secret(self) -> str | None: ...
    @property
    def state(self) -> str: ...
    @property
    def failures(self) -> int: ...
    @property
    def open_until(self) -> datetime | None: ...
    @property
    def now(self) -> datetime: ...


@dataclass(slots=True)
class Callee:
    """A server that the broker calls: its row, and its circuit as this process last read or changed it."""

    id: int
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secrets: tuple[str, ...]
    circuit: Circuit
    #: When the row was read: by the database's clock, and by the event loop's clock.
    read_at: datetime
    read_on: float

    @classmethod
    def of(cls, row: CalleeRow, **more: object) -> Self:
        """A callee made of a row, with the fields that a subclass adds. Raises SecretUnreadable, because the broker
        makes no call without a signature.
        """
        return cls(
            id=row.id,
            url=row.url,
            max_batch=row.max_batch,
            timeout_seconds=row.timeout_seconds,
            concurrency=row.concurrency,
            secrets=tuple(sealing.opened(secret) for secret in (row.secret, row.previous_secret) if secret),
            circuit=Circuit(cast("State", row.state), row.failures, row.open_until),
            read_at=row.now,
            read_on=asyncio.get_running_loop().time(),
            **more,
        )

    @classmethod
    def of_readable(cls, row: CalleeRow, **more: object) -> Self | None:
        """Like `of`, but returns None, with a log entry, for a callee whose secrets this process cannot open."""
        try:
            return cls.of(row, **more)
        except SecretUnreadable as problem:
            logger.error("a server is not called", url=row.url, reason=str(problem))
            return None

    @property
    def age_seconds(self) -> float:
        """The number of seconds since the row was read."""
        return asyncio.get_running_loop().time() - self.read_on

    def now(self) -> datetime:
        """The database's time: the time of the read, plus the seconds that have passed in this process after it."""
        return self.read_at + timedelta(seconds=self.age_seconds)


@dataclass(frozen=True, slots=True)
class Health:
    """The health of callees of one kind, kept by the statements of the app that has their table.

    `claim_probe` takes `id` and `claim_seconds`, and returns the id to only one process. `update_circuit` takes `id`,
    `state`, `failures`, `open_until` and `failure` (None: the call succeeded), and returns the stored state.
    """

    claim_probe: Statement[int]
    update_circuit: Statement[str]

    async def may_call(self, callee: Callee) -> bool:
        """Whether this process may call now. After the callee's open time, one process may make one probe."""
        if not callee.circuit.may_call(callee.now()):
            return False
        if callee.circuit.state == "healthy":
            return True
        claim_seconds = callee.timeout_seconds + PROBE_MARGIN_SECONDS
        rows = await connections.read(self.claim_probe, {"id": callee.id, "claim_seconds": claim_seconds})
        callee.circuit = callee.circuit.probing(callee.now(), claim_seconds)
        return bool(rows)

    async def note(self, callee: Callee, answer: Answer, *, keep_success: bool = False) -> None:
        """Records the outcome of a call in the callee's health.

        A success of a healthy callee changes no state, and is written only with `keep_success`.
        """
        circuit = callee.circuit.after(callee.now(), answer)
        if circuit == callee.circuit and not (answer.ok and keep_success):
            return
        callee.circuit = circuit
        states = await connections.read(
            self.update_circuit,
            {
                "id": callee.id,
                "state": circuit.state,
                "failures": circuit.failures,
                "open_until": circuit.open_until,
                "failure": None if answer.ok else answer.reason,
            },
        )
        if states:
            callee.circuit = replace(callee.circuit, state=cast("State", states[0]))
