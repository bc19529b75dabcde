"""A transaction by itself and one of many in a request: written by different statements, stored the same."""

from tests.broker.wire import Document, Wire


def test_a_message_keeps_its_fields_whether_its_half_message_is_written_by_itself_or_with_others(
    wire: Wire, orders: str
) -> None:
    message = {
        "topic": orders,
        "body": "order 1",
        "tags": "paid",
        "keys": ["order-1", "customer-1"],
        "sharding_key": "customer 1",
        "properties": {"shop": "north"},
        "born_at": "2026-11-01T10:00:00.500000Z",
        "producer_group": "order-service",
    }
    binary = {
        "topic": orders,
        "body_base64": "AAH/",
        "born_at": "2026-11-01T10:00:01.000000Z",
        "producer_group": "order-service",
    }

    by_themselves = [ended_alone(wire, message), ended_alone(wire, binary)]
    together = ended_together(wire, [message, binary])

    assert by_themselves == together
    for given in (message, binary):
        del given["producer_group"]
    assert by_themselves == [message, binary]


def ended_alone(wire: Wire, message: Document) -> Document:
    """The message as it is stored, of a transaction that is begun and committed by calls of its own."""
    begun = wire.post("/v1/transactions", message).document
    end = {"producer_group": message["producer_group"], "state": "COMMIT"}
    assert wire.post(f"/v1/transactions/{begun['transaction_id']}/end", end).status == 200
    return stored(wire, begun["message_id"])


def ended_together(wire: Wire, messages: list[Document]) -> list[Document]:
    """The messages as they are stored, of transactions that are begun and committed by one call each for all."""
    begun = wire.bulk(*({"op": "half", **message} for message in messages))
    ids = [{"op": "end", "transaction_id": answer["transaction_id"]} for answer in begun]
    ended = wire.bulk(*({**id_, "producer_group": "order-service", "state": "COMMIT"} for id_ in ids))
    assert [answer["status"] for answer in ended] == [200, 200]
    return [stored(wire, answer["message_id"]) for answer in begun]


def stored(wire: Wire, message_id: str) -> Document:
    """What the producer gave of a stored message."""
    own = ("message_id", "transaction_id", "stored_at", "commit_log_offset", "reconsume_times")
    found = wire.get(f"/v1/messages/{message_id}").document["message"]
    return {name: value for name, value in found.items() if name not in own}
