"""A list of messages is sent as batches, and bodies may be bytes, a text, or JSON."""

import pytest
from mqbroker_client import BatchesUnfinished, Consumer, Message, Producer
from mqbroker_client.core import errors

from tests.broker.running import RunningBroker
from tests.client.servers import Answer, Asked, busy, scripted
from tests.client.test_coalescing import bulk_of, one, producer_of

MIB = 1024 * 1024


def stored(asked: Asked) -> Answer:
    answer = bulk_of(one(each) for each in asked.body["messages"])
    return Answer(201, answer.body)


def test_a_list_is_split_by_count_and_bytes_and_says_what_went_together(broker: RunningBroker, orders: str) -> None:
    small = [Message(orders, b"%d" % number) for number in range(1_001)]
    large = [Message(orders, b"x" * 3 * MIB), Message(orders, b"y" * MIB)]

    sent = Producer(broker.client(), orders).send_batch(orders, [*small, *large])

    assert [one.message_id for one in sent] == [message.message_id for message in [*small, *large]]
    assert [len(batch) for batch in sent.batches] == [1_000, 2, 1]
    for batch in sent.batches:
        assert len({one.queue_id for one in batch}) == 1
        first = batch[0].queue_offset or 0
        assert [one.queue_offset for one in batch] == list(range(first, first + len(batch)))


def test_a_list_that_fits_is_one_batch() -> None:
    with scripted(stored) as server:
        sent = producer_of(server).send_batch("orders", [Message("orders", b"x" * 2 * MIB)] * 2)

    assert len(server.asked) == 1
    assert len(sent.batches) == 1


def test_a_list_whose_second_batch_fails_says_what_was_stored() -> None:
    messages = [Message("orders", b"x" * 3 * MIB), Message("orders", b"y" * 3 * MIB)]
    with scripted(stored, busy()) as server, pytest.raises(BatchesUnfinished) as refused:
        producer_of(server).send_batch("orders", messages)

    assert [one.message_id for one in refused.value.sent] == [messages[0].message_id]
    assert isinstance(refused.value.__cause__, errors.SystemBusy)
    assert refused.value.detail.startswith("1 of 2 messages were stored, in 1 batches: ")


def test_an_empty_list_is_the_brokers_to_refuse(broker: RunningBroker, orders: str) -> None:
    with pytest.raises(errors.BatchIllegal):
        Producer(broker.client(), orders).send_batch(orders, [])


def test_bodies_are_bytes_texts_or_json(broker: RunningBroker, orders: str) -> None:
    producer, consumer = Producer(broker.client(), orders), Consumer(broker.client(), orders)
    producer.send(orders, "für dich")
    producer.send(orders, json={"order": 1, "to": "ü"})
    producer.begin(orders, json=[1, 2]).commit()

    received = {delivery.body: delivery for delivery in consumer.receive(orders)}
    assert set(received) == {"für dich".encode(), '{"order":1,"to":"ü"}'.encode(), b"[1,2]"}
    assert received[b"[1,2]"].json() == [1, 2]
    with pytest.raises(ValueError, match="Expecting value"):
        received["für dich".encode()].json()


@pytest.mark.parametrize(("body", "json"), [(None, None), (b"1", 1)])
def test_a_message_has_one_body(body: bytes | None, json: object) -> None:
    with pytest.raises(TypeError, match="a message has a body or json: give one of them"):
        Message.of("orders", body, json=json)
