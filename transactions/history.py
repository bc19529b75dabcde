"""The history of a transaction: when it was prepared, every check, every end."""

import uuid
from typing import Any

from store import topics
from store.db import connections
from store.db.connections import Row
from store.db.statements import Statement
from transactions import groups, halves
from transactions.errors import TransactionNotFound
from transactions.rows import CheckAttemptRow, OperationRow

FIND_OPERATIONS = Statement(__file__, "find_operations", OperationRow)
FIND_CHECK_ATTEMPTS = Statement(__file__, "find_check_attempts", CheckAttemptRow)

# A half message is checked a limited number of times; an UNKNOWN may be said any number of times.
MAX_EVENTS = 1000


async def of(transaction_id: uuid.UUID) -> dict[str, Any]:
    """A transaction as it stands, with its history in the order of time.

    Raises TransactionNotFound when it was never stored, or its segment is gone.
    """
    transaction = await halves.find(transaction_id)
    if transaction is None:
        raise TransactionNotFound(f"There is no transaction {transaction_id}: never stored, or its segment is gone.")
    asked = {"transaction_id": transaction_id, "max_events": MAX_EVENTS}
    operations = await connections.read(FIND_OPERATIONS, asked)
    checks = await connections.read(FIND_CHECK_ATTEMPTS, asked)
    events = [_prepared(transaction), *map(_operation, operations), *map(_check, checks)]
    names = await topics.names(set(transaction.topic_ids))
    return {
        "transaction_id": transaction_id,
        "producer_group": await groups.name(transaction.producer_group_id),
        "state": transaction.state,
        "check_times": transaction.check_times,
        "next_check_at": transaction.next_check_at if transaction.state == "PREPARED" else None,
        "last_failure": transaction.last_failure,
        "commit_log_offset": transaction.log_offsets[0],
        "messages": _messages(transaction, names),
        "history": sorted(events, key=lambda event: event["at"]),
    }


async def topics_of(transaction_id: uuid.UUID) -> set[str]:
    """The names of the topics that a transaction writes to; none when it is not known."""
    transaction = await halves.find(transaction_id)
    return set() if transaction is None else set((await topics.names(set(transaction.topic_ids))).values())


def _messages(transaction: Row, names: dict[int, str]) -> list[dict[str, Any]]:
    offsets = transaction.queue_offsets or [None] * len(transaction.message_ids)
    return [
        {"message_id": message_id, "topic": names[topic_id], "queue_id": queue_id, "queue_offset": queue_offset}
        for message_id, topic_id, queue_id, queue_offset in zip(
            transaction.message_ids, transaction.topic_ids, transaction.queue_ids, offsets, strict=True
        )
    ]


def _prepared(transaction: Row) -> dict[str, Any]:
    return {"event": "prepared", "at": transaction.stored_at}


def _operation(row: Row) -> dict[str, Any]:
    return {
        "event": "end" if row.decision in ("COMMIT", "ROLLBACK", "UNKNOWN") else row.decision.lower(),
        "at": row.decided_at,
        "state": row.decision,
        "by": row.decided_by,
        "remark": row.remark,
    }


def _check(row: Row) -> dict[str, Any]:
    return {
        "event": "check",
        "at": row.asked_at,
        "endpoint": row.endpoint_url,
        "status": row.status,
        "latency_ms": row.latency_ms,
        "answer": row.answer,
        "counted": row.counted,
        "reason": row.reason,
    }
