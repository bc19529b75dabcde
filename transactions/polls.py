"""Polled checks: producers that cannot be called fetch the halves that they are asked about."""

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import msgspec
from django.conf import settings

from store import groupcommit
from store.batch import Batch, Kind, Pending
from store.database import Row
from store.errors import GroupNotExist, MessageIllegal
from transactions import groups, outcomes, questions
from transactions.checks import CLAIM_HALVES, seconds_to_next
from transactions.outcomes import Attempt

MAX_TRANSACTIONS = 100
DEFAULT_TRANSACTIONS = 32
# A half that is stored meanwhile, or asked about by an operator, is seen after this at the latest.
LOOK_AGAIN_SECONDS = 1.0


class ReceiveChecks(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a polling producer asks for."""

    max_transactions: int = DEFAULT_TRANSACTIONS
    wait_seconds: float = 0


@dataclass(slots=True)
class Handout:
    """One poll to be answered."""

    group_id: int
    max_transactions: int


async def receive(group_name: str, request: ReceiveChecks) -> list[dict[str, Any]]:
    """The group's transactions whose check is due, as the check-back tells of them; handing one out is a check asked.

    Waits up to `wait_seconds` for the first one. Raises GroupNotExist or MessageIllegal.
    """
    _judge(request)
    group = await groups.find(group_name)
    if group is None:
        raise GroupNotExist(f"There is no producer group {group_name}: its first half message makes it.")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.wait_seconds
    while True:
        halves: list[Row] = []
        if not group.checks_paused:
            halves = await groupcommit.submit(HANDOUTS, Handout(group.id, request.max_transactions))
        left = deadline - loop.time()
        if halves or left <= 0:
            break
        next_due = await seconds_to_next(group.id)
        await asyncio.sleep(min(left, LOOK_AGAIN_SECONDS, max(next_due or left, 0.01)))
    told = await questions.transactions(halves)
    return [told[half.transaction_id] for half in halves if half.transaction_id in told]


def _judge(request: ReceiveChecks) -> None:
    if not 1 <= request.max_transactions <= MAX_TRANSACTIONS:
        raise MessageIllegal(f"max_transactions {request.max_transactions} is not between 1 and {MAX_TRANSACTIONS}.")
    if not 0 <= request.wait_seconds <= settings.MAX_WAIT_SECONDS:
        raise MessageIllegal(f"wait_seconds {request.wait_seconds} is not between 0 and {settings.MAX_WAIT_SECONDS}.")


class Handouts(Kind[Handout]):
    """Polls are answered in a batch: what is handed out is claimed and counted in one write."""

    async def decide(self, batch: Batch, pending: list[Pending[Handout]]) -> None:
        for one in pending:
            claim = {
                "group_id": one.request.group_id,
                "lease_seconds": float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS),
                "max_halves": one.request.max_transactions,
            }
            halves = await batch.read(CLAIM_HALVES, claim)
            await outcomes.postpone(batch, [_attempt(half.transaction_id) for half in halves])
            one.outcome = halves


HANDOUTS = Handouts()


def _attempt(transaction_id: uuid.UUID) -> Attempt:
    return Attempt(
        transaction_id=transaction_id,
        endpoint_id=None,
        endpoint_url=None,
        counted=True,
        answer=None,
        status=None,
        latency_ms=0,
        reason="Handed out to a polling producer.",
        wait_seconds=float(settings.TRANSACTION_CHECK_INTERVAL_SECONDS),
    )
