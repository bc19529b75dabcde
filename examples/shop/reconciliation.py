"""Compares the records of both services: did exactly the paid orders get a coupon, each from one delivery?"""

from collections.abc import Mapping, Set
from uuid import UUID

from mqbroker_client import Producer
from mqbroker_client.core.errors import TransactionNotFound


def reconcile(paid: Set[str], deliveries: Mapping[str, int], decided_by_check_back: int) -> dict[str, int]:
    """Counts the differences between paid orders and coupons.

    `deliveries`: how often the message of each order with a coupon came.
    """
    return {
        "orders paid": len(paid),
        "coupons issued": len(deliveries),
        "lost": len(paid - deliveries.keys()),
        "phantom": len(deliveries.keys() - paid),
        "twice": sum(1 for times in deliveries.values() if times > 1),
        "decided by check-back": decided_by_check_back,
    }


def holds(figures: Mapping[str, int]) -> bool:
    """Whether nothing was lost, invented or done twice. Without any paid order the answer is no."""
    return figures["lost"] == figures["phantom"] == figures["twice"] == 0 < figures["orders paid"]


def decider(producer: Producer, order_id: UUID) -> str | None:
    """Who ended an order's transaction, from the broker's history; None while it is undecided."""
    try:
        transaction = producer.transaction(order_id)
    except TransactionNotFound:
        return "none"
    if transaction["state"] == "PREPARED":
        return None
    ends = [event["by"] for event in transaction["history"] if event.get("state") in ("COMMIT", "ROLLBACK")]
    return ends[0] if ends else "none"
