"""Deliveries in flight: what is handed out, and neither done nor over its invisible time."""

from mqbroker_client import Admin, Consumer, Producer

from tests.broker import metrics
from tests.broker.characters import bodies
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import RunningBroker

NEVER = 3600.0


def in_flight(broker: RunningBroker, group: str) -> float:
    """The metric of a group; 0 where there is none."""
    return metrics.read(broker.url).get(("mqbroker_deliveries_in_flight", group), 0.0)


def test_a_delivery_is_in_flight_until_it_is_acked_or_over(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    for number in range(3):
        producer.send(orders, b"%d" % number)
    deliveries = [*consumer.receive(orders, invisible_seconds=NEVER)]
    while len(deliveries) < 3:
        deliveries += consumer.receive(orders, invisible_seconds=NEVER)
    before = in_flight(broker, consumer.group)

    consumer.ack(deliveries[:1])
    after_ack = in_flight(broker, consumer.group)
    let_deliveries_expire(broker, orders, consumer.group)

    assert (before, after_ack, in_flight(broker, consumer.group)) == (3, 2, 0)


def test_messages_that_an_ordered_group_holds_or_parks_are_not_in_flight(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, ordered=True)
    for body in ("a1", "a2", "b1"):
        producer.send(orders, body.encode(), queue_id=0, sharding_key=body[0])
    consumer.nack(consumer.receive(orders, max_messages=1), delay_seconds=NEVER)
    assert in_flight(broker, consumer.group) == 0

    found = consumer.receive(orders, invisible_seconds=NEVER)

    assert bodies(found) == [b"b1"]
    assert in_flight(broker, consumer.group) == 1
