"""What a server has done is settled once the database takes it: no retry is counted for a busy broker."""

import asyncio

import psycopg
from aiohttp import web
from mqbroker_client import Consumer, Producer

from tests.broker.endpoints import Asked, ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.push.operators import Operator

RECEIPTS = "SELECT FROM receipt AS r JOIN consumer_group AS g ON r.group_id = g.id WHERE g.name = %s FOR UPDATE OF r"


def test_an_ack_that_the_broker_is_too_busy_for_is_written_later(
    broker: RunningBroker,
    operator: Operator,
    producer: Producer,
    consumer: Consumer,
    server: ProducerEndpoint,
    topic: str,
) -> None:
    operator.does("PUT", f"/v1/consumer-groups/{consumer.group}", max_reconsume_times=0)
    with psycopg.connect(broker.database_url) as session:

        async def reply(asked: Asked) -> web.StreamResponse:
            await asyncio.to_thread(session.execute, RECEIPTS, [consumer.group])
            return web.Response(status=204)

        server.replies(reply)
        operator.subscribes(consumer.group, topic, server.url)
        producer.send(topic, b"order 1")
        eventually(lambda: f"subscription={consumer.group}" in broker.log() and " settled" in broker.log())
        session.rollback()

    eventually(lambda: operator.in_flight(consumer.group) == 0, within_seconds=60)
    assert len(server.asked) == 1
    assert operator.wire.get(f"/v1/dead-letters/{consumer.group}").document["results"] == []
