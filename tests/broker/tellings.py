"""A transaction as the broker answers it, and all that a group receives: what many tests read."""

from datetime import datetime

from mqbroker_client import Consumer, Delivery

from tests.broker.polling import eventually
from tests.broker.wire import Document, Wire


def told(wire: Wire, transaction_id: object) -> Document:
    """A transaction as the broker answers it."""
    document: Document = wire.get(f"/v1/transactions/{transaction_id}").document
    return document


def ended(wire: Wire, transaction_id: object) -> Document | None:
    """The transaction once it is ended, else None."""
    document = told(wire, transaction_id)
    return document if document["state"] in ("COMMITTED", "ROLLED_BACK") else None


def after_a_check(wire: Wire, transaction_id: object) -> Document | None:
    """The transaction once a check of it was answered, else None."""
    document = told(wire, transaction_id)
    return document if any(event["event"] == "check" for event in document["history"]) else None


def received_until_empty(consumer: Consumer, topic: str, filter: str = "*") -> list[Delivery]:
    """All that there is for a group now."""
    found: list[Delivery] = []
    while more := consumer.receive(topic, filter=filter):
        found += more
    return found


def visible_at(wire: Wire, message_id: object) -> datetime:
    """When a message became visible in its topic, by the database's clock; waits for it."""

    def visible() -> Document | None:
        trace: Document = wire.get(f"/v1/messages/{message_id}/trace").document
        return trace if trace["state"] == "VISIBLE" else None

    events = eventually(visible)["events"]
    return min(datetime.fromisoformat(event["at"]) for event in events if event["event"] == "visible")
