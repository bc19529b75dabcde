"""Messages that consumers forward from topic to topic: each arrives once, also where processes are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from mqbroker_client import Consumer, Message, Producer

from mqbroker.embedded.commands import ROOT
from tests.broker import characters, databases
from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker

# More with MQ_FORWARDED.
MESSAGES = int(os.environ.get("MQ_FORWARDED", "400"))
KILLS = 4
# A delivery of a consumer that is killed comes again after this.
INVISIBLE_SECONDS = 2
CONSUMER = f"""
import sys
from mqbroker_client import Broker, Consumer, Message
urls, key, group, source, target = sys.argv[1:]
with Broker(urls.split(","), key) as broker:
    Consumer(broker, group).run(
        source, lambda delivery: Message(target, delivery.body), invisible_seconds={INVISIBLE_SECONDS}, ordered=False
    )
"""


@pytest.fixture
def broker(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker whose web processes may be killed."""
    with (
        databases.copied(prepared) as database_url,
        RunningBroker(tmp_path, database_url, os.environ["REDIS_URL"], webs=2) as broker,
    ):
        yield broker


class Hop:
    """A process that forwards from one topic to the next."""

    def __init__(self, broker: RunningBroker, source: str, target: str) -> None:
        urls, group = ",".join(broker.urls), f"to-{target}"
        self._command = [sys.executable, "-c", CONSUMER, urls, API_KEY, group, source, target]
        self.start()

    def start(self) -> None:
        """Starts it."""
        path = os.pathsep.join([str(ROOT), str(ROOT / "client")])
        self._process = subprocess.Popen(self._command, env={**os.environ, "PYTHONPATH": path})

    def kill(self) -> None:
        """Ends it as by kill -9."""
        self._process.kill()
        self._process.wait()


def has_acked_all(broker: RunningBroker, target: str) -> bool:
    """Whether the hop to a topic has been handed all messages and has acked them."""
    found = broker.wire(1).get(f"/v1/consumer-groups/to-{target}").document["lag"]
    return all(queue["oldest_unacked_at"] is None for queue in found)


@pytest.mark.chaos
def test_each_message_arrives_once_at_the_end_of_a_chain(broker: RunningBroker) -> None:
    topics = [characters.name(stem) for stem in ("orders", "paid", "shipped")]
    producer = Producer(broker.client(), "shop")
    for first in range(0, MESSAGES, 100):
        producer.send_batch(
            topics[0], [Message(topics[0], b"%d" % number) for number in range(first, min(first + 100, MESSAGES))]
        )
    reader, found = Consumer(broker.client(1), "reader"), list[bytes]()

    def more() -> bool:
        deliveries = reader.receive(topics[-1], invisible_seconds=60)
        reader.ack(deliveries)
        found.extend(bodies(deliveries))
        return bool(deliveries)

    with ExitStack() as running:
        hops = [Hop(broker, *pair) for pair in pairwise(topics) for _ in range(2)]
        for hop in hops:
            running.callback(hop.kill)
        for number in range(KILLS):
            # Between two kills something arrives, so each finds a chain at work.
            eventually(lambda: more() or len(found) >= MESSAGES)
            hops[number % len(hops)].kill()
            broker.webs[0].send_to_group(signal.SIGKILL)
            broker.webs[0].wait(120)
            broker.webs[0].start()
            hops[number % len(hops)].start()
        broker.wait_until_ready()
        eventually(lambda: not more() and len(found) >= MESSAGES, 30 + MESSAGES / 100)
        # What was in hand at a kill comes again, and would be forwarded again.
        eventually(lambda: all(has_acked_all(broker, target) for target in topics[1:]))
    while more():
        pass

    assert sorted(found) == sorted(b"%d" % number for number in range(MESSAGES))
