"""A web process that has lost its way to the control keeps an old map of topics, across a split, and loses nothing."""

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from mqbroker_client import Admin, Broker, Message, Producer
from mqbroker_client.errors import BrokerError
from mqbroker_client.retries import Retry

from tests.broker import characters
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY
from tests.chaos import mutants
from tests.chaos.mutants import Mutant
from tests.moves.ground import Ground, url_in

# MQ_OLD_MAP_SECONDS=10 in the environment has the map as old as that.
OLD_MAP_SECONDS = float(os.environ.get("MQ_OLD_MAP_SECONDS", "4"))
# Also where the split itself took that long: more than the longest pause of the SDK between two tries.
OLD_MAP_BEHIND_SECONDS = 3.0
CALLERS = 8
QUEUES = 2


class Callers:
    """Producers of a topic by the SDK, each with one message after another and every second one a transaction's."""

    def __init__(self, url: str, topic: str) -> None:
        broker = Broker(url, API_KEY, retry=Retry(tries=60, seconds=60))
        self._producer = Producer(broker, characters.name("shop"))
        self._topic = topic
        self._ends = threading.Event()
        self.acknowledged: list[str] = []

    def work(self, caller: int) -> None:
        number = 0
        while not self._ends.is_set():
            body = f"{caller}-{number}"
            number += 1
            # The SDK tries a half for three seconds, as RocketMQ does. One that is refused has no end.
            with suppress(BrokerError) if number % 2 else nullcontext():
                if number % 2:
                    self._producer.begin(self._topic, body.encode()).commit()
                else:
                    self._producer.send_message(Message(self._topic, body.encode()))
                self.acknowledged.append(body)

    def end(self) -> None:
        self._ends.set()


def _stored(ground: Ground, topic: str) -> Counter[str]:
    """The bodies of a topic, and how often each is there, by a process with the map as it is."""
    found: Counter[str] = Counter()
    for queue in range(QUEUES):
        offset = 0
        while (
            page := ground.broker.wire(1)
            .get(f"/v1/topics/{topic}/queues/{queue}/messages?offset={offset}&max=100")
            .document["messages"]
        ):
            assert [entry["queue_offset"] for entry in page] == list(range(offset, offset + len(page)))
            found.update(entry["message"]["body"] for entry in page)
            offset += len(page)
    return found


@pytest.mark.parametrize("mutant", [None, mutants.NEWEST_MAP], ids=["the product", "the mutant"])
def test_what_the_sdk_sends_by_an_old_map_is_stored_once_and_a_broker_that_compares_with_the_newest_is_caught(
    tmp_path: Path, mutant: Mutant | None
) -> None:
    ground = Ground(tmp_path, mutant)
    try:
        with DatabaseProxy(ground.primary.url) as proxy:
            ground.broker.webs[0].environment["DATABASE_URL"] = proxy.url
            with ground.broker:
                lost, twice = _beside_a_split(ground, proxy, is_mutant=mutant is not None)
    finally:
        ground.close()

    assert (lost, twice) == ([], []) if mutant is None else lost


def _beside_a_split(ground: Ground, proxy: DatabaseProxy, *, is_mutant: bool) -> tuple[list[str], list[str]]:
    """What was acknowledged and is not there, and what is there twice. The mutant goes on to acknowledge."""
    topic, target = characters.name("moving"), characters.name("c")
    Admin(ground.broker.client(1)).create_topic(topic, queues=QUEUES)
    url = url_in(ground.standby(), "mqbroker_c1")
    callers = Callers(ground.broker.urls[0], topic)
    with ThreadPoolExecutor(CALLERS) as threads:
        working = [threads.submit(callers.work, caller) for caller in range(CALLERS)]
        try:
            time.sleep(0.5)
            proxy.swallow(packets=True)
            until = time.monotonic() + OLD_MAP_SECONDS
            ground.cells("split", "c1", "--into", target, "--standby", url, "--home", topic)
            began, by_split = time.monotonic(), len(callers.acknowledged)
            ground.broker.wire(0).post("/v1/messages", {"topic": topic, "body": "beside"})
            assert time.monotonic() - began < at_this_load(5), "a request waits for a control that hangs"
            time.sleep(max(until - time.monotonic(), OLD_MAP_BEHIND_SECONDS))
            if is_mutant:
                # Its callers may pause longer on a busy machine.
                eventually(lambda: len(callers.acknowledged) > by_split + CALLERS)
            proxy.swallow(packets=False)
            before = len(callers.acknowledged)
            while len(callers.acknowledged) < before + CALLERS * 4 and not any(one.done() for one in working):
                time.sleep(0.05)
        finally:
            proxy.swallow(packets=False)
            callers.end()
    for one in working:
        one.result()
    stored = _stored(ground, topic)
    stored.pop("beside", None)
    return sorted({*callers.acknowledged} - {*stored}), sorted(body for body, times in stored.items() if times > 1)
