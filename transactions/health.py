"""The health of endpoints: which may be called now, and what a call changes. Kept in rows that all workers share."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from store import database
from store.database import Row
from store.statements import Statement
from webhooks.answers import Answer
from webhooks.breaker import Circuit

FIND_CALLABLE_ENDPOINTS = Statement(__file__, "find_callable_endpoints")
CLAIM_PROBE = Statement(__file__, "claim_probe")
UPDATE_CIRCUIT = Statement(__file__, "update_circuit")

# Both secrets sign for this long after a rotation.
ROTATION_HOURS = 24
PROBE_MARGIN_SECONDS = 5.0


@dataclass(slots=True)
class Endpoint:
    """An endpoint while a claim is asked: its row, and its circuit as this process knows it."""

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
    def of(cls, row: Row) -> "Endpoint":
        """From the row of FIND_CALLABLE_ENDPOINTS."""
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
        )

    def now(self) -> datetime:
        """The database's time, by what has passed here since the row was read."""
        return self.read_at + timedelta(seconds=asyncio.get_running_loop().time() - self.read_on)


async def callable_endpoints(group_id: int) -> Sequence[Endpoint]:
    """The endpoints of a group that may be called now."""
    rows = await database.read(FIND_CALLABLE_ENDPOINTS, {"group_id": group_id, "rotation_hours": ROTATION_HOURS})
    return [Endpoint.of(row) for row in rows]


async def may_call(endpoint: Endpoint) -> bool:
    """Whether to call now. An endpoint whose open time is over gets one probe, from one worker."""
    if not endpoint.circuit.may_call(endpoint.now()):
        return False
    if endpoint.circuit.state == "healthy":
        return True
    lease = endpoint.timeout_seconds + PROBE_MARGIN_SECONDS
    rows = await database.read(CLAIM_PROBE, {"id": endpoint.id, "lease_seconds": lease})
    endpoint.circuit = endpoint.circuit.probing(endpoint.now(), lease)
    return bool(rows)


async def note(endpoint: Endpoint, answer: Answer) -> None:
    """Keeps what a call says of the endpoint's health; a success of a healthy one changes and writes nothing."""
    circuit = endpoint.circuit.after(endpoint.now(), answer)
    if circuit == endpoint.circuit:
        return
    endpoint.circuit = circuit
    await database.read(
        UPDATE_CIRCUIT,
        {
            "id": endpoint.id,
            "state": circuit.state,
            "failures": circuit.failures,
            "open_until": circuit.open_until,
            "failure": None if answer.ok else answer.reason,
        },
    )


def unreachable() -> Answer:
    """Stands for a call that was not made because every endpoint's circuit is open."""
    return Answer(outcome="refused", asked=False, reason="No endpoint of the group may be called now.", latency_ms=0)
