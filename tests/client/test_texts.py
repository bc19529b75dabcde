"""Texts of a program: what is no UTF-8 keeps no message from being settled and no transaction from its end."""

from mqbroker_client import Consumer, Producer

from tests.broker.wire import Wire


def test_a_reason_and_a_remark_with_bytes_that_are_no_text_are_sent_all_the_same(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    """Such as the name of a file has in the message of an error."""
    transaction = producer.begin(orders, b"order 1")
    transaction.unknown("no file \udcff")
    transaction.commit()
    [delivery] = consumer.receive(orders, wait_seconds=5)

    consumer.nack([delivery], reason="no file \udcff")

    history = wire.get(f"/v1/transactions/{transaction.transaction_id}").document["history"]
    trace = wire.get(f"/v1/messages/{delivery.message.message_id}/trace").document["events"]
    assert [event["remark"] for event in history if event.get("remark")] == [r"no file \udcff"]
    assert [event["reason"] for event in trace if event["event"] == "nack"] == [r"no file \udcff"]
