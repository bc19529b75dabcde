"""Large bodies: one answer holds so many bytes at most, and what does not fit comes with the next."""

import asyncio
import http.client
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, QUICK, RunningBroker

BODY = b"x" * (3 * 1024 * 1024)
# MAX_RECEIVE_BYTES is 16 MiB: an answer ends with the message that fills it.
FIT = 6
SENT = 10


@pytest.fixture(scope="module")
def heavy(broker: RunningBroker) -> str:
    """A topic with thirty megabytes in one queue, which each test reads by groups of its own."""
    orders = characters.name("orders")
    producer = Producer(broker.client(), characters.name("order-service"))
    for number in range(SENT):
        producer.send(orders, b"%d" % number + BODY, queue_id=1, tags="heavy")
    return orders


@pytest.mark.parametrize("wishes", [{}, {"filter": "heavy"}], ids=["all", "filtered"])
def test_a_receive_ends_with_the_message_that_fills_it_and_the_next_goes_on(
    consumer: Consumer, heavy: str, wishes: dict[str, Any]
) -> None:
    answers = [consumer.receive(heavy, **wishes), consumer.receive(heavy, **wishes)]

    assert [[delivery.body[:1] for delivery in answer] for answer in answers] == [
        [b"%d" % number for number in range(FIT)],
        [b"%d" % number for number in range(FIT, SENT)],
    ]


def test_a_pull_ends_with_the_message_that_fills_it_and_says_where_to_go_on(consumer: Consumer, heavy: str) -> None:
    page = consumer.pull(heavy, 1, 0, max=SENT)

    assert len(page.messages) == FIT
    assert page.next_offset == FIT
    assert len(consumer.pull(heavy, 1, page.next_offset, max=SENT).messages) == SENT - FIT


def test_pages_are_smaller_while_another_reader_holds_its_answer(
    broker: RunningBroker, heavy: str, tmp_path: Path
) -> None:
    settings = QUICK | {"MQBROKER_ANSWERS_IN_FLIGHT_BYTES": str(16 * 1024 * 1024)}
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(tmp_path, broker.database_url, redis_url, settings, tasks=False) as narrow:
        path = f"/v1/topics/{heavy}/queues/1/messages?offset=0&max={SENT}"
        alone = len(narrow.wire().get(path).document["messages"])
        stalled = http.client.HTTPConnection(urlsplit(narrow.url).netloc)
        stalled.request("GET", path, headers={"Authorization": f"Bearer {API_KEY}"})

        # Half of what is free, less a message of the largest size, and the message that fills the page.
        assert alone == 2
        eventually(lambda: len(narrow.wire().get(path).document["messages"]) == 1)
        # The answer of the caller that hung up is dropped, and its bytes are free again.
        stalled.close()
        eventually(lambda: len(narrow.wire().get(path).document["messages"]) == alone)


def test_many_groups_that_receive_large_bodies_at_once_get_all_of_them(
    broker: RunningBroker, heavy: str, tmp_path: Path
) -> None:
    settings = QUICK | {"MQBROKER_ANSWERS_IN_FLIGHT_BYTES": str(6 * 1024 * 1024)}
    redis_url = broker.environment["REDIS_URL"]

    async def read_all(narrow: RunningBroker, group: str) -> list[str]:
        consumer = Consumer(narrow.client(), group)
        found: list[str] = []
        while len(found) < SENT:
            found += [one.body[:1].decode() for one in await asyncio.to_thread(consumer.receive, heavy, wait_seconds=5)]
        return found

    async def all_of(narrow: RunningBroker) -> list[list[str]]:
        return await asyncio.gather(*(read_all(narrow, f"{heavy}-{number}") for number in range(6)))

    with RunningBroker(tmp_path, broker.database_url, redis_url, settings, tasks=False) as narrow:
        assert asyncio.run(all_of(narrow)) == [[str(number) for number in range(SENT)]] * 6
