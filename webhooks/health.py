"""The health of whom the broker calls: who may be called now, and what a call changes. Kept in rows of all processes.

The rows are their owners': an endpoint's and a subscription's have the same columns for it, and each app its own SQL.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from webhooks.answers import Answer
from webhooks.breaker import Circuit

# Both secrets sign for this long after a rotation.
ROTATION_HOURS = 24
PROBE_MARGIN_SECONDS = 5.0


@dataclass(slots=True)
class Callee:
    """Whom the broker calls: its row, and its circuit as this process knows it."""

    id: int
    url: str
    max_batch: int
    timeout_seconds: float
    concurrency: int
    secrets: tuple[str, ...]
    circuit: Circuit
    read_at: datetime
    read_on: float

    @classmethod
    def of(cls, row: Row, **more: Any) -> Self:
        """From a row with these columns, the secrets that sign now, the circuit's columns and the database's `now`."""
        return cls(
            id=row.id,
            url=row.url,
            max_batch=row.max_batch,
            timeout_seconds=row.timeout_seconds,
            concurrency=row.concurrency,
            secrets=tuple(secret for secret in (row.secret, row.previous_secret) if secret),
            circuit=Circuit(row.state, row.failures, row.open_until),
            read_at=row.now,
            read_on=asyncio.get_running_loop().time(),
            **more,
        )

    @property
    def age_seconds(self) -> float:
        """How long ago the row was read."""
        return asyncio.get_running_loop().time() - self.read_on

    def now(self) -> datetime:
        """The database's time, by what has passed here since the row was read."""
        return self.read_at + timedelta(seconds=self.age_seconds)


@dataclass(frozen=True, slots=True)
class Health:
    """How callees of one kind fare, by the statements of whoever owns their rows.

    `claim_probe` takes `id` and `lease_seconds`, and returns a row to the one that may probe. `update_circuit` takes
    `id`, `state`, `failures`, `open_until` and `failure` (None: the call succeeded); where its owner judges further it
    returns the state that it kept.
    """

    claim_probe: Statement[Any]
    update_circuit: Statement[Any]

    async def may_call(self, callee: Callee) -> bool:
        """Whether to call now. A callee whose open time is over gets one probe, from one worker."""
        if not callee.circuit.may_call(callee.now()):
            return False
        if callee.circuit.state == "healthy":
            return True
        lease = callee.timeout_seconds + PROBE_MARGIN_SECONDS
        rows = await connections.read(self.claim_probe, {"id": callee.id, "lease_seconds": lease})
        callee.circuit = callee.circuit.probing(callee.now(), lease)
        return bool(rows)

    async def note(self, callee: Callee, answer: Answer, *, keep_success: bool = False) -> None:
        """Keeps what a call says of the callee's health.

        A success of a healthy one changes nothing, and is written only with `keep_success`.
        """
        circuit = callee.circuit.after(callee.now(), answer)
        if circuit == callee.circuit and not (answer.ok and keep_success):
            return
        callee.circuit = circuit
        rows = await connections.read(
            self.update_circuit,
            {
                "id": callee.id,
                "state": circuit.state,
                "failures": circuit.failures,
                "open_until": circuit.open_until,
                "failure": None if answer.ok else answer.reason,
            },
        )
        if rows:
            callee.circuit = replace(callee.circuit, state=rows[0].state)
