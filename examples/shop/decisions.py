"""Reads from the broker how each order's transaction was ended: by the order service, or by a check."""

import threading
import time
from collections.abc import Iterable
from uuid import UUID

from mqbroker_client import Producer
from mqbroker_client.errors import TransactionNotFound

POLL_SECONDS = 0.5
CHECK = "check"
# No end: the transaction never reached the broker.
NONE = "none"


def wait_for_all(
    producer: Producer, order_ids: Iterable[UUID], give_up_at: float, stop: threading.Event
) -> dict[UUID, str]:
    """What ended each order's transaction. Orders still undecided at `give_up_at` (of `time.monotonic`) are missing."""
    decided: dict[UUID, str] = {}
    waiting = list(order_ids)
    while waiting:
        for order_id in waiting:
            if (decider := _decider(producer, order_id)) is not None:
                decided[order_id] = decider
        waiting = [order_id for order_id in waiting if order_id not in decided]
        if not waiting or time.monotonic() > give_up_at or stop.wait(POLL_SECONDS):
            break
    return decided


def _decider(producer: Producer, order_id: UUID) -> str | None:
    try:
        transaction = producer.transaction(order_id)
    except TransactionNotFound:
        # No half message was stored: the customer was answered 503, and nothing was paid.
        return NONE
    if transaction["state"] == "PREPARED":
        return None
    deciders = [event["by"] for event in transaction["history"] if event.get("state") in ("COMMIT", "ROLLBACK")]
    return deciders[0] if deciders else NONE
