"""Trials: checks about no transaction, which show whether the broker can read an endpoint's answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models.functions import Now

from store.messages.ids import new_id
from store.models import Namespace
from store.naming import namespaces
from transactions import endpoints
from transactions.checks import questions
from transactions.checks.questions import Result
from transactions.models import Endpoint
from webhooks.caller import Caller
from webhooks.endpoint_answers import Answer, Outcome, way_out
from webhooks.results import NoResults, results_of


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial. `ok`: the answer of a check could be read. `outcome`: the outcome of the call."""

    ok: bool
    outcome: Outcome
    status: int | None
    latency_ms: float
    reason: str


def ask(endpoint: Endpoint) -> Trial:
    """Sends a signed check about no transaction. Does not change the endpoint's health or any history.

    Blocks for at most the endpoint's `timeout_seconds`, so call it outside of the event loop.
    """
    now = Endpoint.objects.filter(id=endpoint.id).values_list(Now(), flat=True).first()
    answer = asyncio.run(_call(endpoint, _payload(endpoint.group.name), endpoints.signing_secrets(endpoint), now))
    complaint = _complaint(answer)
    return Trial(
        ok=complaint is None,
        outcome=answer.outcome,
        status=answer.status,
        latency_ms=answer.latency_ms,
        reason=complaint or answer.reason,
    )


def _payload(group_name: str) -> bytes:
    """The body of a check about no transaction, with bare names for a group in a namespace."""
    payload = questions.payload(group_name, [])
    row = Namespace.objects.filter(name=namespaces.part_of(group_name)).first()
    return payload if row is None else namespaces.Namespace(row.name, is_bound=True).show_document(payload)


async def _call(endpoint: Endpoint, payload: bytes, secrets: Sequence[str], now: datetime | None) -> Answer:
    # A new Caller, because this code runs in the event loop of this thread, not in the loop of the data plane.
    async with Caller(settings.WEBHOOK_ALLOWED_NETWORKS) as caller:
        webhook_id, seconds = f"try_{new_id()}", endpoint.timeout_seconds
        return await caller.post(endpoint.url, payload, secrets, webhook_id, seconds, now=now)


def _complaint(answer: Answer) -> str | None:
    """The reason why such an answer to a check would decide nothing; None if it would decide."""
    if answer.outcome != "answered":
        return answer.reason
    if (advice := way_out(answer)) is not None:
        return advice
    if answer.status != 200:
        return f"{answer.reason} A check's answer has the status 200."
    try:
        results_of(answer.body, Result)
    except NoResults as problem:
        return f"The endpoint answered 200, but {problem}: a check would decide nothing."
    return None
