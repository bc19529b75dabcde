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
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.retries import Retry

from tests.broker import characters
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load
from tests.broker.prepared_servers import url_in
from tests.broker.running import API_KEY
from tests.chaos import mutants
from tests.chaos.mutants import Mutant
from tests.moves.ground import Ground

# MQ_OLD_MAP_SECONDS=10 in the environment has the map as old as that.
OLD_MAP_SECONDS = float(os.environ.get("MQ_OLD_MAP_SECONDS", "4"))
# Also where the split itself took that long: more than the longest pause of the SDK between two tries.
OLD_MAP_BEHIND_SECONDS = 3.0
CALLERS = 8
# Between two messages of a caller.
PACE_SECONDS = 0.02
QUEUES = 2
RUNS_OF_THE_MUTANT = 8


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
        while not self._ends.wait(PACE_SECONDS):
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


def test_what_the_sdk_sends_by_an_old_map_is_stored_once(tmp_path: Path) -> None:
    assert _run(tmp_path, None) == ([], [])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_broker_that_compares_with_the_newest_map_is_caught(tmp_path: Path) -> None:
    """In one of several runs: where a split takes longer than a process believes what it knows, it asks the control."""
    for number in range(RUNS_OF_THE_MUTANT):
        folder = tmp_path / str(number)
        folder.mkdir()
        if _run(folder, mutants.NEWEST_MAP)[0]:
            return
    pytest.fail(f"the mutant has lost nothing in {RUNS_OF_THE_MUTANT} runs")


def _run(folder: Path, mutant: Mutant | None) -> tuple[list[str], list[str]]:
    """What is lost, and what is there twice."""
    ground = Ground(folder, mutant)
    try:
        with DatabaseProxy(ground.primary.url) as proxy:
            ground.broker.webs[0].environment["DATABASE_URL"] = proxy.url
            with ground.broker:
                return _beside_a_split(ground, proxy)
    finally:
        ground.close()


def _beside_a_split(ground: Ground, proxy: DatabaseProxy) -> tuple[list[str], list[str]]:
    """What was acknowledged and is not there, and what is there twice."""
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
            began = time.monotonic()
            ground.broker.wire(0).post("/v1/messages", {"topic": topic, "body": "beside"})
            assert time.monotonic() - began < at_this_load(5), "a request waits for a control that hangs"
            time.sleep(max(until - time.monotonic(), OLD_MAP_BEHIND_SECONDS))
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
