"""Topics with many queues: as many as a topic may have, and many groups that receive from them at once."""

import pytest
from mqbroker_client import Admin

from tests.broker import characters
from tests.broker.load import Crowd, at_once
from tests.broker.running import RunningBroker
from tests.broker.wire import Document

QUEUES = 1024
GROUPS = 40


@pytest.fixture
def wide_orders(broker: RunningBroker, orders: str) -> str:
    """A topic with very many queues."""
    Admin(broker.client()).create_topic(orders, queues=QUEUES)
    return orders


async def test_many_groups_receive_at_once_from_a_topic_of_many_queues(broker: RunningBroker, wide_orders: str) -> None:
    groups = [characters.name("reader") for _ in range(GROUPS)]

    async with Crowd(broker.urls) as crowd:
        send = {"op": "send", "topic": wide_orders}
        await crowd.bulk({**send, "body": str(queue_id), "queue_id": queue_id} for queue_id in range(0, QUEUES, 64))

        async def receive(group: str) -> tuple[int, Document]:
            return await crowd.post(f"/v1/consumer-groups/{group}/receive", {"topic": wide_orders})

        answers = await at_once(receive, groups)

    received = [sorted(int(entry["message"]["body"]) for entry in document["messages"]) for _, document in answers]
    assert received == [list(range(0, QUEUES, 64))] * GROUPS
