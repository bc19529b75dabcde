"""The history of a transaction: when it was prepared, every check, every end."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.db.models import OuterRef, Subquery

from store.cells import cells
from store.db import connections, databases, sync
from store.db.statements import Statement
from store.naming import topic_names
from transactions import Decision, groups, results
from transactions.models import Endpoint, HalfMessage, ProducerGroup
from transactions.reads import states
from transactions.reads.listing import UNDECIDED
from transactions.reads.states import FIND_TRANSACTIONS
from transactions.results import TransactionEvent, TransactionHistory
from transactions.rows import CheckAttemptRow, OperationRow, TransactionRow

FIND_CHECK_ATTEMPTS = Statement(__file__, "find_check_attempts", CheckAttemptRow)
FIND_OPERATIONS = Statement(__file__, "find_operations", OperationRow)

# The most events of a history. The checks of a half message are limited, but a producer may send UNKNOWN any number of
# times.
MAX_EVENTS = 1000

EVENTS: dict[Decision, Literal["end", "discard", "resume"]] = {
    "COMMIT": "end",
    "ROLLBACK": "end",
    "UNKNOWN": "end",
    "DISCARD": "discard",
    "RESUME": "resume",
}


async def of(transaction_id: uuid.UUID) -> TransactionHistory:
    """The current state of a transaction, with its history in the order of time.

    Raises TransactionNotFound if the transaction was never stored, or its segment was dropped.
    """
    transaction: TransactionRow | None = await states.find(transaction_id)
    if transaction is None:
        raise states.not_found(transaction_id)
    operations = await operations_of(transaction_id)
    limits = {"transaction_id": transaction_id, "max_events": MAX_EVENTS}
    async with states.holding(transaction_id):
        checks = await connections.read(FIND_CHECK_ATTEMPTS, limits)
    names = await topic_names.of_ids(set(transaction.topic_ids))
    prepared = TransactionEvent("prepared", transaction.stored_at)
    events = [prepared, *map(_operation, operations), *map(_check, checks)]
    return TransactionHistory(
        transaction_id=transaction_id,
        producer_group=await groups.name(transaction.producer_group_id),
        state=transaction.state,
        check_times=transaction.check_times,
        next_check_at=results.next_check_at(transaction),
        last_failure=transaction.last_failure,
        commit_log_offset=transaction.log_offsets[0],
        messages=results.parts(transaction, names),
        history=sorted(events, key=lambda event: event.at),
    )


@dataclass(frozen=True, slots=True)
class TransactionRows:
    """The rows of a transaction in all tables: its own, its operations and its checks, the oldest first.

    `immunity_seconds` and `endpoint_url`, which the sender chose, are None once the transaction is decided.
    `producer_group` is None if the group was deleted.
    """

    transaction: TransactionRow
    operations: Sequence[OperationRow]
    checks: Sequence[CheckAttemptRow]
    producer_group: ProducerGroup | None
    immunity_seconds: float | None
    endpoint_url: str | None


def kept(transaction_id: uuid.UUID) -> TransactionRows | None:
    """The rows of a transaction; None if it was never stored, or its segment was dropped."""
    found = cells.ask(lambda: _kept_in_cell(transaction_id))
    return next((kept for kept in found.values() if kept is not None), None)


def _kept_in_cell(transaction_id: uuid.UUID) -> TransactionRows | None:
    rows = sync.read(FIND_TRANSACTIONS, {"transaction_ids": [transaction_id]})
    if not rows:
        return None
    [transaction] = rows
    parameters = {"transaction_id": transaction_id, "max_events": MAX_EVENTS}
    immunity_seconds, endpoint_url = _of_half(transaction)
    return TransactionRows(
        transaction=transaction,
        operations=sync.read(FIND_OPERATIONS, parameters),
        checks=sync.read(FIND_CHECK_ATTEMPTS, parameters),
        producer_group=ProducerGroup.objects.using(databases.here()).filter(id=transaction.producer_group_id).first(),
        immunity_seconds=immunity_seconds,
        endpoint_url=endpoint_url,
    )


def _of_half(transaction: TransactionRow) -> tuple[float | None, str | None]:
    """The immunity in seconds and the URL of the endpoint that the sender chose; each None if it is missing."""
    if transaction.state not in UNDECIDED:
        return None, None
    url = Endpoint.objects.filter(id=OuterRef("endpoint_id")).values("url")
    half = HalfMessage.objects.filter(transaction_id=transaction.transaction_id)
    found: tuple[float, str | None] | None = half.values_list("immunity_seconds", Subquery(url)).first()
    return found or (None, None)


async def operations_of(transaction_id: uuid.UUID) -> list[OperationRow]:
    """The first MAX_EVENTS operations of a transaction, in the order of time."""
    limits = {"transaction_id": transaction_id, "max_events": MAX_EVENTS}
    async with states.holding(transaction_id):
        return list(await connections.read(FIND_OPERATIONS, limits))


async def topics_of(transaction_id: uuid.UUID) -> set[str]:
    """The names of the topics of a transaction's messages; empty if there is no transaction with this id."""
    transaction: TransactionRow | None = await states.find(transaction_id)
    return set() if transaction is None else set((await topic_names.of_ids(set(transaction.topic_ids))).values())


def _operation(row: OperationRow) -> TransactionEvent:
    return TransactionEvent(
        EVENTS[row.decision], row.decided_at, state=row.decision, by=row.decided_by, remark=row.remark
    )


def _check(row: CheckAttemptRow) -> TransactionEvent:
    return TransactionEvent(
        "check",
        row.asked_at,
        endpoint=row.endpoint_url,
        status=row.status,
        latency_ms=row.latency_ms,
        answer=row.answer,
        counted=row.counted,
        reason=row.reason,
    )
