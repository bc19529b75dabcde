"""Asks the broker what it decided about each order, and who did: the order service, or a check."""

import threading
import time
from collections.abc import Iterable
from uuid import UUID

from mqbroker_client import Producer
from mqbroker_client.errors import TransactionNotFound

POLL_SECONDS = 0.5
CHECK = "check"


def wait_for_all(
    producer: Producer, order_ids: Iterable[UUID], give_up_at: float, stop: threading.Event
) -> dict[UUID, str]:
    """Who decided each order; those that nobody has decided at `give_up_at` (of `time.monotonic`) are missing."""
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
        # The half never reached the broker: the customer was told so, and nothing was paid.
        return "nobody"
    if transaction["state"] == "PREPARED":
        return None
    deciders = [event["by"] for event in transaction["history"] if event.get("state") in ("COMMIT", "ROLLBACK")]
    return deciders[0] if deciders else "nobody"
