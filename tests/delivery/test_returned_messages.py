"""What handlers return is sent with the ack of their delivery, in threads and in coroutines."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import datetime

import pytest
from mqbroker_client import Admin, Consumer, Delivery, Message, Producer
from mqbroker_client.aio import AsyncBroker, AsyncConsumer
from mqbroker_client.core.handlers import messages_of

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty

MESSAGES = 200


def test_what_handlers_return_goes_from_topic_to_topic_once(
    broker: RunningBroker, producer: Producer, orders: str, paid: str
) -> None:
    shipped = characters.name("shipped")
    group, stop = characters.name("pipeline"), threading.Event()
    failures = iter(range(MESSAGES // 10))

    def pay(delivery: Delivery) -> Message:
        if next(failures, None) is not None:
            raise RuntimeError("at the first try of some")
        return Message(paid, delivery.body)

    def ship(delivery: Delivery) -> list[Message]:
        return [Message(shipped, delivery.body), Message(shipped, delivery.body + b" again")]

    Admin(broker.client()).create_consumer_group(group, retry_policy={"kind": "table", "delay_seconds": [0]})
    runs = [
        threading.Thread(target=Consumer(broker.client(web), group).run, args=(topic, handler), kwargs={"stop": stop})
        for web, topic, handler in ((0, orders, pay), (1, orders, pay), (0, paid, ship), (1, paid, ship))
    ]
    for number in range(MESSAGES):
        producer.send(orders, b"%d" % number)
    for run in runs:
        run.start()
    reader, found = Consumer(broker.client(), characters.name("readers")), list[bytes]()

    def has_all() -> bool:
        found.extend(ackd(reader, reader.receive(shipped, wait_seconds=1)))
        return len(found) >= 2 * MESSAGES

    eventually(has_all)
    stop.set()
    for run in runs:
        run.join(120)

    found.extend(ackd(reader, received_until_empty(reader, shipped)))
    assert sorted(found) == sorted(b"%d%s" % (number, tail) for number in range(MESSAGES) for tail in (b"", b" again"))


def ackd(reader: Consumer, deliveries: Sequence[Delivery]) -> list[bytes]:
    """Their bodies, acked."""
    reader.ack(deliveries)
    return bodies(deliveries)


async def test_what_coroutines_return_is_sent_with_the_ack(
    broker: RunningBroker, producer: Producer, later: Consumer, orders: str, paid: str
) -> None:
    stop = asyncio.Event()

    async def pay(delivery: Delivery) -> list[Message]:
        return [Message(paid, delivery.body)]

    for number in range(10):
        producer.send(orders, b"%d" % number)
    async with AsyncBroker(broker.url, API_KEY) as client:
        run = asyncio.create_task(AsyncConsumer(client, characters.name("pipeline")).run(orders, pay, stop=stop))
        found: list[Delivery] = []
        while len(found) < 10:
            found += await asyncio.to_thread(later.receive, paid, wait_seconds=5)
        stop.set()
        await run

    assert sorted(bodies(found)) == sorted(b"%d" % number for number in range(10))


@pytest.mark.parametrize("returned", ["a text", ["texts"], None, {"a": 1}])
def test_what_a_handler_returns_beside_messages_is_nothing(returned: object) -> None:
    assert messages_of(returned) == []


def test_messages_among_others_are_refused() -> None:
    with pytest.raises(TypeError, match="return a list of messages alone"):
        messages_of([Message("paid", b"1"), "2"])


def test_what_can_never_be_sent_ends_as_a_dead_letter(
    broker: RunningBroker, producer: Producer, orders: str, paid: str
) -> None:
    group, stop = characters.name("pipeline"), threading.Event()
    made = {
        b"a time without a zone": Message(paid, b"x", deliver_at=datetime(2030, 1, 1)),  # noqa: DTZ001  the client refuses it
        b"a queue that is not there": Message(paid, b"x", queue_id=99),
        b"a topic that is forbidden": Message("%DLQ%x", b"x"),
    }
    Admin(broker.client()).create_consumer_group(group, retry_policy={"kind": "none"})
    for body in made:
        producer.send(orders, body)

    def letters() -> list[str]:
        results = broker.wire().get(f"/v1/dead-letters/{group}").document["results"]
        return sorted(letter["message"]["body"] for letter in results)

    run = threading.Thread(
        target=Consumer(broker.client(), group).run,
        args=(orders, lambda delivery: made[delivery.body]),
        kwargs={"stop": stop},
    )
    run.start()
    try:
        eventually(lambda: len(letters()) == len(made))
    finally:
        stop.set()
        run.join(120)

    assert letters() == sorted(body.decode() for body in made)
