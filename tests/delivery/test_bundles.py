"""Bundles: the deliveries of one receive share a row, and each is settled, extended and offered again by itself."""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Delivery, Producer

from delivery.receipts.handles import PACKED
from tests.broker.characters import bodies
from tests.broker.deliveries import count
from tests.broker.load import Crowd, at_once
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker

# More than the 64 places of a bundle, and no multiple of what a receive takes.
MANY = 150
AT_ONCE = 30
# An old version's receipt, with a nonce that has the bit of bundles by chance.
MADE_BEFORE = """
WITH gone AS (DELETE FROM bundle AS b USING consumer_group AS g WHERE g.id = b.group_id AND g.name = %s RETURNING b.*)
INSERT INTO receipt (
    group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
    reconsume_times, origin_topic_id, state
)
SELECT
    g.group_id, g.topic_id, g.queue_id, g.first_offset, g.nonce, g.expires_at, g.received_at, g.log_segment,
    g.log_offsets[1], 0, 0, g.origin_topic_id, 'flight'
FROM gone AS g
RETURNING group_id, topic_id, queue_id, queue_offset, nonce
"""


def sent(producer: Producer, topic: str, messages: int) -> list[bytes]:
    """Sends messages to one queue, and returns their bodies."""
    made = [f"order {number}".encode() for number in range(messages)]
    for body in made:
        producer.send(topic, body, queue_id=0)
    return made


def statuses(settled: Sequence[Any]) -> Counter[int]:
    return Counter(one.status for one in settled)


def in_flight(broker: RunningBroker, topic: str, group: str) -> int:
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        return count(connection, group)


def test_each_place_of_a_bundle_is_acked_once(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    made = sent(producer, orders, MANY)
    found: list[Delivery] = []
    while len(found) < MANY:
        found += consumer.receive(orders, max_messages=AT_ONCE)
    assert bodies(found) == made
    assert in_flight(broker, orders, consumer.group) == MANY

    assert statuses(consumer.ack(found[::3])) == {200: MANY // 3}
    assert in_flight(broker, orders, consumer.group) == MANY - MANY // 3
    assert statuses(consumer.ack(found)) == {200: MANY - MANY // 3, 410: MANY // 3}
    assert in_flight(broker, orders, consumer.group) == 0


@pytest.mark.parametrize("fails", ["nack", "expires"])
def test_of_a_bundle_only_what_was_not_acked_comes_again(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str, fails: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "table", "delay_seconds": [0]})
    made = sent(producer, orders, 5)
    found = consumer.receive(orders)
    assert bodies(found) == made
    consumer.ack(found[:2])

    if fails == "nack":
        consumer.nack(found[2:4])
        assert statuses(consumer.ack(found[4:])) == {200: 1}
    else:
        consumer.extend(found[4:], invisible_seconds=60)
        time_passes_for_bundles(broker, orders, consumer.group)
        assert statuses(consumer.ack(found[4:])) == {200: 1}

    again: list[Delivery] = []
    for _ in range(2):
        again += eventually(partial(consumer.receive, orders))
        consumer.ack(again[-1:])
    assert Counter((one.body, one.delivery_attempt) for one in again) == {(made[2], 2): 1, (made[3], 2): 1}
    assert statuses(consumer.ack(found)) == {410: 5}
    assert (consumer.receive(orders), in_flight(broker, orders, consumer.group)) == ([], 0)


def time_passes_for_bundles(broker: RunningBroker, topic: str, group: str) -> None:
    over = "UPDATE bundle AS b SET expires_at = now() FROM consumer_group AS g WHERE g.id = b.group_id AND g.name = %s"
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        connection.execute(over, [group])


def test_deliveries_of_a_bundle_that_are_returned_count_no_retry(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    made = sent(producer, orders, 3)
    found = consumer.receive(orders)
    consumer.ack(found[:1])

    answer = broker.wire().post(
        f"/v1/consumer-groups/{consumer.group}/return", {"receipt_handles": [one.receipt_handle for one in found]}
    )

    assert [one["status"] for one in answer.document["results"]] == [410, 200, 200]
    again: list[Delivery] = []
    while len(again) < 2:
        again += eventually(partial(consumer.receive, orders))
    assert sorted((one.body, one.delivery_attempt) for one in again) == [(made[1], 1), (made[2], 1)]


def test_a_reset_takes_the_deliveries_of_a_bundle_back(
    producer: Producer, consumer: Consumer, orders: str, broker: RunningBroker
) -> None:
    made = sent(producer, orders, 4)
    found = consumer.receive(orders)
    consumer.extend(found[:1], invisible_seconds=60)

    asked = json.dumps({"topic": orders, "to": "earliest"}).encode()
    assert broker.wire().call("PUT", f"/v1/consumer-groups/{consumer.group}/offsets", asked).status == 200

    assert statuses(consumer.ack(found)) == {410: 4}
    assert bodies(consumer.receive(orders)) == made


def test_a_handle_that_an_earlier_version_gave_out_is_taken(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    sent(producer, orders, 2)
    consumer.receive(orders)
    with psycopg.connect(broker.database_of(orders), autocommit=True) as connection:
        [row] = connection.execute(MADE_BEFORE, [consumer.group]).fetchall()
    before = base64.urlsafe_b64encode(PACKED.pack(*row)).decode().rstrip("=")

    results = [
        broker.wire().post(f"/v1/consumer-groups/{consumer.group}/{call}", {"receipt_handles": [before], **more})
        for call, more in (("extend", {"invisible_seconds": 60}), ("ack", {}), ("ack", {}))
    ]

    assert [one.document["results"][0]["status"] for one in results] == [200, 200, 410]


def test_a_handle_that_is_made_up_is_refused_beside_handles_that_are_taken(
    producer: Producer, consumer: Consumer, orders: str, broker: RunningBroker
) -> None:
    sent(producer, orders, 4)
    handles = [one.receipt_handle for one in consumer.receive(orders)]
    made_up = ["", "none", "é" * len(handles[0]), f"{handles[0][:-14]}....{handles[0][-10:]}", f"{handles[0][:-4]}AAAA"]

    answer = broker.wire().post(f"/v1/consumer-groups/{consumer.group}/ack", {"receipt_handles": [*made_up, *handles]})

    assert [one["status"] for one in answer.document["results"]] == [410] * len(made_up) + [200] * len(handles)


async def test_consumers_at_several_processes_settle_deliveries_of_one_bundle_at_once(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str
) -> None:
    """Each delivery is acked, extended and nacked by three calls at once, at two processes: one outcome holds."""
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "table", "delay_seconds": [0]})
    made = await asyncio.to_thread(sent, producer, orders, MANY)
    group = f"/v1/consumer-groups/{consumer.group}"
    async with Crowd(broker.urls[:1]) as here, Crowd(broker.urls[1:]) as there:
        handles: dict[str, str] = {}
        while len(handles) < MANY:
            _, answer = await here.post(f"{group}/receive", {"topic": orders})
            handles |= {entry["receipt_handle"]: entry["message"]["body"] for entry in answer["messages"]}

        async def settle(handle: str) -> tuple[str, int, int]:
            given = {"receipt_handles": [handle]}
            answers = await asyncio.gather(
                here.post(f"{group}/ack", given),
                there.post(f"{group}/extend", given | {"invisible_seconds": 60}),
                there.post(f"{group}/nack", given),
            )
            acked, _, nacked = (answer["results"][0]["status"] for _, answer in answers)
            return handles[handle], acked, nacked

        outcomes = await at_once(settle, list(handles))
    assert {(acked, nacked) for _, acked, nacked in outcomes} <= {(200, 410), (410, 200)}

    nacked = {body for body, _, status in outcomes if status == 200}
    again: Counter[str] = Counter()
    while again.total() < len(nacked):
        received = await asyncio.to_thread(eventually, partial(consumer.receive, orders))
        again.update(one.body.decode() for one in received)
        await asyncio.to_thread(consumer.ack, received)
    assert again == Counter(nacked)
    assert len(made) == len(handles)
    assert await asyncio.to_thread(in_flight, broker, orders, consumer.group) == 0
