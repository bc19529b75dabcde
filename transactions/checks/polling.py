"""Polled checks: producers that cannot be called fetch the halves that they are asked about."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from django.conf import settings

from store.commit import writer
from store.commit.batch import Batch, Kind, Pending
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from store.errors import GroupNotExist, MessageIllegal
from transactions import groups
from transactions.checks import outcomes, questions
from transactions.checks.checker import CLAIM_HALVES, seconds_to_next
from transactions.checks.outcomes import Attempt
from transactions.groups import GroupFacts
from transactions.rows import TopicName

LIST_TOPIC_NAMES = Statement(__file__, "list_topic_names", TopicName)

MAX_TOPICS = 100_000
MAX_TRANSACTIONS = 100
DEFAULT_TRANSACTIONS = 32
# Bodies and properties of one answer; the first transaction is handed out however large it is.
MAX_BYTES = 8 * 1024 * 1024
# A half that is stored meanwhile, or asked about by an operator, is seen after this at the latest.
LOOK_AGAIN_SECONDS = 1.0
# What is due and was not handed out is just being claimed, is paused, or is for others.
SHORTEST_PAUSE_SECONDS = 0.2


class ReceiveChecks(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a polling producer asks for."""

    max_transactions: int = DEFAULT_TRANSACTIONS
    wait_seconds: float = 0


@dataclass(slots=True)
class Handout:
    """One poll to be answered."""

    group_id: int
    max_transactions: int
    # None: of every topic.
    topic_ids: list[int] | None


async def receive(
    group_name: str,
    request: ReceiveChecks,
    gone: asyncio.Future[Any] | None = None,
    may_produce: Callable[[str], bool] | None = None,
) -> list[dict[str, Any]]:
    """The group's transactions whose check is due, as the check-back tells of them; handing one out is a check asked.

    Waits up to `wait_seconds` for the first one, and not for a producer that is `gone`: its checks would be counted for
    nothing. `may_produce` says of a topic whether the producer may be asked about it. Raises GroupNotExist or
    MessageIllegal.
    """
    _judge(request)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + request.wait_seconds
    halves: list[Row] = []
    while gone is None or not gone.done():
        group = await _group(group_name)  # each time: its checks may be paused meanwhile
        if not group.checks_paused:
            topic_ids = None if may_produce is None else await _topics(may_produce)
            halves = await writer.submit(HANDOUTS, Handout(group.id, request.max_transactions, topic_ids))
        left = deadline - loop.time()
        if halves or left <= 0:
            break
        await _wait(min(left, await _pause(group)), gone)
    told = await questions.transactions(halves)
    return [told[half.transaction_id] for half in halves if half.transaction_id in told]


async def _group(name: str) -> GroupFacts:
    group = await groups.find(name)
    if group is None:
        raise GroupNotExist(f"There is no producer group {name}: its first half message makes it.")
    return group


async def _topics(may_produce: Callable[[str], bool]) -> list[int]:
    rows = await connections.read(LIST_TOPIC_NAMES, {"max_topics": MAX_TOPICS})
    return [row.id for row in rows if may_produce(row.name)]


async def _pause(group: GroupFacts) -> float:
    """Seconds until it is worth looking again."""
    seconds = await seconds_to_next(group.id)
    return LOOK_AGAIN_SECONDS if seconds is None else min(max(seconds, SHORTEST_PAUSE_SECONDS), LOOK_AGAIN_SECONDS)


async def _wait(seconds: float, gone: asyncio.Future[Any] | None) -> None:
    if gone is None:
        await asyncio.sleep(seconds)
    else:
        await asyncio.wait((gone,), timeout=seconds)


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
                "max_bytes": MAX_BYTES,
                "topic_ids": one.request.topic_ids,
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
