"""The health of endpoints: which of a producer group's may be called now, and what a call changes."""

from collections.abc import Sequence

from store import database
from store.statements import Statement
from webhooks.answers import Answer
from webhooks.health import ROTATION_HOURS, Callee, Health

FIND_CALLABLE_ENDPOINTS = Statement(__file__, "find_callable_endpoints")
CLAIM_PROBE = Statement(__file__, "claim_probe")
UPDATE_CIRCUIT = Statement(__file__, "update_circuit")

Endpoint = Callee

_health = Health(CLAIM_PROBE, UPDATE_CIRCUIT)
may_call = _health.may_call
note = _health.note


async def callable_endpoints(group_id: int) -> Sequence[Endpoint]:
    """The endpoints of a group that may be called now."""
    rows = await database.read(FIND_CALLABLE_ENDPOINTS, {"group_id": group_id, "rotation_hours": ROTATION_HOURS})
    return [Endpoint.of(row) for row in rows]


def unreachable() -> Answer:
    """Stands for a call that was not made because every endpoint's circuit is open."""
    return Answer(outcome="refused", asked=False, reason="No endpoint of the group may be called now.", latency_ms=0)
