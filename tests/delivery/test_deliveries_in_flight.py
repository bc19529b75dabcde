"""Deliveries in flight: what is handed out, and neither done nor over its invisible time."""

import psycopg
import pytest
import urllib3
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.running import API_KEY, RunningBroker

NEVER = 3600.0


def in_flight(broker: RunningBroker, group: str) -> float:
    """The metric of a group; 0 where there is none."""
    answer = urllib3.request("GET", f"{broker.url}/metrics", headers={"Authorization": f"Bearer {API_KEY}"})
    assert answer.status == 200
    name = f'mqbroker_deliveries_in_flight{{consumer_group="{group}"}} '
    lines = answer.data.decode().splitlines()
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(name)), 0.0)


@pytest.mark.one_cell(because="/metrics reads the control", control=True)
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
    over = "UPDATE receipt AS r SET expires_at = now() FROM consumer_group AS g WHERE g.id = r.group_id AND g.name = %s"
    with psycopg.connect(broker.database_of(orders), autocommit=True) as connection:
        connection.execute(over, [consumer.group])

    assert (before, after_ack, in_flight(broker, consumer.group)) == (3, 2, 0)


@pytest.mark.one_cell(because="/metrics reads the control", control=True)
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
