"""What the broker tells of a transaction, and all that a group receives now: what many tests look at."""

from mqbroker_client import Consumer, Delivery

from tests.broker.wire import Document, Wire


def told(wire: Wire, transaction_id: object) -> Document:
    """What the broker tells of a transaction."""
    document: Document = wire.get(f"/v1/transactions/{transaction_id}").document
    return document


def ended(wire: Wire, transaction_id: object) -> Document | None:
    """What the broker tells of a transaction once it is decided, else None."""
    document = told(wire, transaction_id)
    return document if document["state"] in ("COMMITTED", "ROLLED_BACK") else None


def after_a_check(wire: Wire, transaction_id: object) -> Document | None:
    """What the broker tells of a transaction once a check of it has come back, else None."""
    document = told(wire, transaction_id)
    return document if any(event["event"] == "check" for event in document["history"]) else None


def received_until_empty(consumer: Consumer, topic: str, filter: str = "*") -> list[Delivery]:
    """All that there is for a group now."""
    found: list[Delivery] = []
    while more := consumer.receive(topic, filter=filter):
        found += more
    return found
