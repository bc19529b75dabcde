"""A group by priority: a queue of a higher number comes first, however much waits in the lower ones."""

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker import characters
from tests.broker.running import RunningBroker

LOW, HIGH, URGENT = range(3)
WAITING = 20


@pytest.fixture(params=[{}, {"filter": "news"}, {"ordered": True}], ids=["plain", "filtered", "ordered"])
def urgent_first(request: pytest.FixtureRequest, broker: RunningBroker, orders: str) -> tuple[Consumer, str | None]:
    """A consumer of such a group, and how it receives."""
    admin, group = Admin(broker.client()), characters.name("by-priority")
    admin.create_topic(orders, queues=URGENT + 1)
    admin.create_consumer_group(group, queue_order="priority", ordered="ordered" in request.param)
    return Consumer(broker.client(), group), request.param.get("filter")


def test_queues_of_a_higher_number_come_first_and_what_comes_later_overtakes(
    producer: Producer, urgent_first: tuple[Consumer, str | None], orders: str
) -> None:
    consumer, tags = urgent_first

    def send(priority: int, count: int) -> None:
        for number in range(count):
            producer.send(orders, f"{priority} {number}".encode(), queue_id=priority, tags="news")

    def receive(count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count and (more := consumer.receive(orders, max_messages=count - len(found), filter=tags)):
            consumer.ack(more)
            found += [delivery.body.decode() for delivery in more]
        return found

    send(LOW, WAITING)
    send(HIGH, 2)
    assert receive(4) == ["1 0", "1 1", "0 0", "0 1"]
    send(URGENT, 1)
    send(HIGH, 1)
    assert receive(3) == ["2 0", "1 0", "0 2"]
    assert len(receive(WAITING)) == WAITING - 3


def test_without_it_no_queue_is_always_first(broker: RunningBroker, producer: Producer, orders: str) -> None:
    Admin(broker.client()).create_topic(orders, queues=2)
    for queue in (0, 1):
        for _ in range(WAITING):
            producer.send(orders, str(queue).encode(), queue_id=queue)
    consumer = Consumer(broker.client(), characters.name("by-turns"))

    first = {consumer.receive(orders, max_messages=1)[0].body for _ in range(WAITING)}

    assert first == {b"0", b"1"}
