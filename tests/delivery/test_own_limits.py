"""A message may bring the retries that it is worth, and say where it was born."""

import pytest
from mqbroker_client import Admin, Consumer, Message, Producer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire


def received(consumer: Consumer, orders: str) -> list[int]:
    """The retries before each delivery of a message that fails each time, until no more comes."""
    found = []
    while deliveries := consumer.receive(orders, wait_seconds=3):
        found += [delivery.message.reconsume_times for delivery in deliveries]
        consumer.nack(deliveries)
    return found


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(("own", "group", "deliveries"), [(2, 0, [0, 1, 2]), (0, 5, [0]), (None, 1, [0, 1])])
def test_the_limit_of_a_message_goes_before_that_of_its_group(
    broker: RunningBroker,
    producer: Producer,
    consumer: Consumer,
    wire: Wire,
    orders: str,
    own: int | None,
    group: int,
    deliveries: list[int],
    ordered: bool,
) -> None:
    at_once = {"kind": "table", "delay_seconds": [0]}
    Admin(broker.client()).create_consumer_group(
        consumer.group, max_reconsume_times=group, retry_policy=at_once, ordered=ordered
    )
    producer.send(orders, b"order 1", max_reconsume_times=own, sharding_key="a", properties={"n": '"x":"9"'})

    assert received(consumer, orders) == deliveries

    def dead() -> list[Document]:
        found: list[Document] = wire.get(f"/v1/dead-letters/{consumer.group}").document["results"]
        return found

    [letter] = eventually(dead)
    expected = {} if own is None else {"MAX_RECONSUME_TIMES": str(own)}
    assert expected.items() <= letter["message"]["properties"].items()


def test_the_limit_holds_where_the_invisible_time_is_over(
    broker: RunningBroker, producer: Producer, consumer: Consumer, wire: Wire, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, max_reconsume_times=5)
    producer.send(orders, b"order 1", max_reconsume_times=0)

    assert len(consumer.receive(orders, invisible_seconds=1)) == 1

    assert eventually(lambda: wire.get(f"/v1/dead-letters/{consumer.group}").document["results"])


def test_a_text_that_looks_like_the_limit_is_none(producer: Producer, consumer: Consumer, orders: str) -> None:
    Admin(producer.broker).create_consumer_group(
        consumer.group, max_reconsume_times=1, retry_policy={"kind": "table", "delay_seconds": [0]}
    )
    producer.send(orders, b"order 1", properties={"note": '"MAX_RECONSUME_TIMES":"7"', ',"MAX_RECONSUME_TIMES': "6"})

    assert received(consumer, orders) == [0, 1]


def test_both_are_received_as_they_were_sent_by_each_way(producer: Producer, consumer: Consumer, orders: str) -> None:
    message = Message(orders, b"order 1", born_host="web-7 (Kraków)", max_reconsume_times=3, properties={"a": "b"})
    producer.send_message(message)
    producer.send_batch(orders, [Message(orders, b"order 2", born_host="web-7 (Kraków)", max_reconsume_times=3)])
    producer.begin(orders, b"order 3", born_host="web-7 (Kraków)", max_reconsume_times=3).commit()

    found = [delivery.message for delivery in consumer.receive(orders, wait_seconds=5)]
    while len(found) < 3:
        found += [delivery.message for delivery in consumer.receive(orders, wait_seconds=5)]

    assert [(one.born_host, one.max_reconsume_times) for one in found] == [("web-7 (Kraków)", 3)] * 3
    assert sorted((one.body, dict(one.properties)) for one in found)[0] == (b"order 1", {"a": "b"})


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("max_reconsume_times", -1, "max_reconsume_times"),
        ("max_reconsume_times", 1001, "max_reconsume_times"),
        ("born_host", " ", "born_host ' ' cannot be used"),
        ("born_host", "x" * 256, "1 to 255 characters"),
        ("born_host", "a\nb", "without control characters"),
        ("properties", {"MAX_RECONSUME_TIMES": "3"}, "use the field max_reconsume_times"),
        ("properties", {"BORN_HOST": "a"}, "use the field born_host"),
    ],
)
def test_what_cannot_be_kept_is_refused(wire: Wire, field: str, value: object, sentence: str) -> None:
    answer = wire.post("/v1/messages", {"topic": characters.name("orders"), "body": "x", field: value})

    assert (answer.status, answer.problem["code"]) == (422, "message_illegal")
    assert sentence in answer.problem["detail"]
