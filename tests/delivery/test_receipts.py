"""Receipts: each proves one delivery for as long as its time lasts, and nothing afterwards."""

import asyncio
import base64
from collections import Counter
from functools import partial

from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.load import Crowd, at_once
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire, problem

HEARTBEATS = 400


def test_an_ack_is_answered_for_each_receipt_in_its_order(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    for number in range(2):
        producer.send(orders, f"order {number}".encode())
    first, second = (delivery.receipt_handle for delivery in consumer.receive(orders))

    answer = ack(wire, consumer, second, "no receipt", first)

    assert answer == [
        {"receipt_handle": second, "status": 200},
        {"receipt_handle": "no receipt", **expired("no receipt")},
        {"receipt_handle": first, "status": 200},
    ]


def test_a_receipt_that_was_acked_proves_nothing_any_more(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    handle = delivery.receipt_handle
    ack(wire, consumer, handle)

    assert ack(wire, consumer, handle) == [{"receipt_handle": handle, **expired(handle)}]


def test_the_receipt_of_an_earlier_delivery_does_not_ack_a_later_one(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    [late] = consumer.receive(orders, invisible_seconds=1)
    [again] = eventually(partial(consumer.receive, orders))

    assert ack(wire, consumer, late.receipt_handle) == [
        {"receipt_handle": late.receipt_handle, **expired(late.receipt_handle)}
    ]
    assert ack(wire, consumer, again.receipt_handle) == [{"receipt_handle": again.receipt_handle, "status": 200}]


def test_a_receipt_is_of_no_use_to_another_group(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    other = Consumer(broker.client(), characters.name("mail-service"))
    other.receive(orders)

    assert ack(wire, other, delivery.receipt_handle)[0]["status"] == 410
    assert ack(wire, consumer, delivery.receipt_handle)[0]["status"] == 200


def test_a_forged_receipt_proves_nothing(wire: Wire, producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    held = bytearray(base64.urlsafe_b64decode(delivery.receipt_handle + "=="))
    forgeries = []
    for place in range(4, len(held)):
        forged = bytearray(held)
        forged[place] ^= 0xFF
        forgeries.append(base64.urlsafe_b64encode(forged).decode().rstrip("="))

    assert ack(wire, consumer, *forgeries) == [{"receipt_handle": one, **expired(one)} for one in forgeries]
    assert ack(wire, consumer, delivery.receipt_handle)[0]["status"] == 200


def test_a_group_that_does_not_exist_acks_nothing(wire: Wire) -> None:
    for group in ("nobody", "a%20b"):
        answer = wire.post(f"/v1/consumer-groups/{group}/ack", {"receipt_handles": ["x"]})

        assert (answer.status, answer.problem["code"]) == (404, "group_not_exist")


def test_an_ack_has_one_to_a_thousand_receipts(wire: Wire, producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"order 1")
    consumer.receive(orders)

    for count in (0, 1001):
        answer = wire.post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": ["x"] * count})

        assert answer.problem == problem(
            422, "message_illegal", f"receipt_handles has {count} handles: give 1 to 1000."
        )


def test_an_ack_within_a_bulk_is_answered_as_one_alone(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    [delivery] = consumer.receive(orders)
    handles = [delivery.receipt_handle, "no receipt"]

    [result] = wire.bulk({"op": "ack", "group": consumer.group, "receipt_handles": handles})

    assert result == {
        "status": 200,
        "results": [
            {"receipt_handle": delivery.receipt_handle, "status": 200},
            {"receipt_handle": "no receipt", **expired("no receipt")},
        ],
    }


def test_a_message_that_is_given_back_comes_again_after_the_delay_that_is_asked_for(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1")
    deliveries = consumer.receive(orders)

    [settled] = consumer.nack(deliveries, delay_seconds=0)

    assert settled.status == 200
    [again] = eventually(partial(consumer.receive, orders))
    assert (again.body, again.delivery_attempt) == (b"order 1", 2)


def test_a_delivery_that_is_extended_stays_hidden_longer(producer: Producer, consumer: Consumer, orders: str) -> None:
    producer.send(orders, b"extended", queue_id=0)
    producer.send(orders, b"forgotten", queue_id=0)
    extended, _ = consumer.receive(orders, invisible_seconds=1)

    [settled] = consumer.extend([extended], invisible_seconds=60)

    assert settled.status == 200
    assert bodies(eventually(partial(consumer.receive, orders))) == [b"forgotten"]
    assert consumer.ack([extended])[0].status == 200


async def test_an_ack_counts_also_while_its_delivery_is_being_extended(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    """A heartbeat extends what its consumer is just done with, at another web process."""
    group = f"/v1/consumer-groups/{consumer.group}"
    async with Crowd(broker.urls[:1]) as here, Crowd(broker.urls[1:]) as there:
        await here.bulk({"op": "send", "topic": orders, "body": "order"} for _ in range(HEARTBEATS))
        handles: list[str] = []
        while len(handles) < HEARTBEATS:
            _, answer = await here.post(f"{group}/receive", {"topic": orders})
            handles += [entry["receipt_handle"] for entry in answer["messages"]]

        async def finish(handle: str) -> int:
            extended = there.post(f"{group}/extend", {"receipt_handles": [handle], "invisible_seconds": 60})
            acked = here.post(f"{group}/ack", {"receipt_handles": [handle]})
            _, (_, answer) = await asyncio.gather(extended, acked)
            status: int = answer["results"][0]["status"]
            return status

        assert Counter(await at_once(finish, handles)) == {200: HEARTBEATS}


def ack(wire: Wire, consumer: Consumer, *handles: str) -> list[Document]:
    """The results of an ack."""
    answer = wire.post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": handles})
    assert answer.status == 200, answer
    results: list[Document] = answer.document["results"]
    return results


def expired(handle: str) -> Document:
    """The answer for a receipt that proves nothing."""
    return problem(
        410,
        "receipt_expired",
        f"The receipt {handle[:60]} is acked already, or its invisible time is over. A message without an ack "
        "is delivered again: ack within the invisible time, or extend it.",
    )
