"""The shop's books side by side: did every paid order, and nothing else, get its coupon, from one delivery?"""

from collections.abc import Mapping, Set
from uuid import UUID

from mqbroker_client import Producer
from mqbroker_client.core.errors import TransactionNotFound


def reconcile(paid: Set[str], deliveries: Mapping[str, int], decided_by_check_back: int) -> dict[str, int]:
    """`deliveries`: for each order that got its coupon, how often its message came."""
    return {
        "orders paid": len(paid),
        "coupons issued": len(deliveries),
        "lost": len(paid - deliveries.keys()),
        "phantom": len(deliveries.keys() - paid),
        "twice": sum(1 for times in deliveries.values() if times > 1),
        "decided by check-back": decided_by_check_back,
    }


def holds(figures: Mapping[str, int]) -> bool:
    """Whether no coupon is missing, extra or twice. False for a day without a paid order, which proves nothing."""
    return figures["lost"] == figures["phantom"] == figures["twice"] == 0 < figures["orders paid"]


def decider(producer: Producer, order_id: UUID) -> str | None:
    """The decision about an order's transaction, from the broker's history; None while the transaction is undecided."""
    try:
        transaction = producer.transaction(order_id)
    except TransactionNotFound:
        return "none"
    if transaction["state"] == "PREPARED":
        return None
    ends = [event["by"] for event in transaction["history"] if event.get("state") in ("COMMIT", "ROLLBACK")]
    return ends[0] if ends else "none"
