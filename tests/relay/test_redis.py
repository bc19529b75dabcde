"""A queue of Redis is a key beside those of the target's own consumers: a message chooses none of these."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu import Connection
from mqbroker_client import Message

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.relay.conftest import Source, relay

OWN = ("unacked", "unacked_index", "unacked_mutex", "_kombu.binding.orders", "celery-task-meta-1", "amq.reply")
KEPT = "is a name that the target keeps for itself"


@pytest.fixture
def url() -> Iterator[str]:
    """A database of Redis without a key."""
    url = os.environ["REDIS_URL"].rsplit("/", 1)[0] + "/8"
    yield url
    with redis.Redis.from_url(url) as server:
        server.flushdb()


def test_a_message_that_names_a_key_of_the_consumers_is_a_dead_letter_and_they_go_on(
    broker: RunningBroker, url: str, tmp_path: Path
) -> None:
    source, queue = Source(broker), characters.name("queue")
    names = (*OWN, None)
    for number, name in enumerate(names):
        message = Message(source.topic, b"bad", tags=name, keys=f"bad-{number}", max_reconsume_times=0)
        source.producer.send_message(message)
    source.producer.send_message(Message(source.topic, b"good", tags=queue))
    target = f'kind = "amqp"\nurl = "{url}"\nrouting_key = "{{tags}}"\n'
    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{target}")
    program.start()
    try:
        letters = eventually(lambda: found if len(found := source.letters()) == len(names) else None)
        with Connection(url) as connection, connection.SimpleQueue(queue, serializer="json") as consumer:
            # It notes what it has in hand under a key of its own.
            received = consumer.get(timeout=60)
            body: Any = received.body
            received.ack()
    finally:
        program.stop()

    assert body == b"good"
    reasons = {letter["message"]["keys"][0]: letter["reason"] for letter in letters}
    assert all(KEPT in reasons[f"bad-{number}"] for number in range(len(OWN)))
    assert "the routing key is empty" in reasons[f"bad-{len(OWN)}"]
