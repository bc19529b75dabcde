"""A target that falls silent: its connections stay open, and nothing is answered any more."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from mqbroker_client import Message

from tests.broker import characters
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.relay.conftest import RABBIT, Source, Target, relay

URL = re.compile(r'(?<=url = ")[^"]+')
# Messages of 900 kB that are published at the same time: more than the buffers of a connection take.
LARGE = 24


class Redis:
    """A list of the tests' Redis."""

    def __init__(self) -> None:
        self._url = os.environ["REDIS_URL"].rsplit("/", 1)[0] + "/8"
        self._queue = characters.name("queue")
        self.lines = f'kind = "amqp"\nurl = "{self._url}"\nrouting_key = "{self._queue}"\n'

    def has_one(self) -> bool:
        with redis.Redis.from_url(self._url) as server:
            return bool(server.llen(self._queue) == 1)

    def clear(self) -> None:
        with redis.Redis.from_url(self._url) as server:
            server.flushdb()


@pytest.fixture
def of_redis() -> Iterator[Redis]:
    target = Redis()
    yield target
    target.clear()


@pytest.mark.parametrize("system", [RABBIT, "nats"], indirect=True)
def test_a_relay_says_that_its_target_is_silent_and_ends_when_it_is_asked_to(
    broker: RunningBroker, target: Target, tmp_path: Path
) -> None:
    says_so_and_ends(broker, target.lines, lambda: len(target.received()) == 1, tmp_path)


def test_a_relay_says_that_its_redis_is_silent_and_ends_when_it_is_asked_to(
    broker: RunningBroker, of_redis: Redis, tmp_path: Path
) -> None:
    says_so_and_ends(broker, of_redis.lines, of_redis.has_one, tmp_path)


def says_so_and_ends(broker: RunningBroker, lines: str, has_one: Callable[[], bool], folder: Path) -> None:
    source = Source(broker)
    found = URL.search(lines)
    assert found is not None
    with DatabaseProxy(found.group()) as proxy:
        relays = f"{source.lines}concurrency = {LARGE}\n\n[target]\n{URL.sub(proxy.url, lines)}"
        program = relay(broker, folder, relays)
        program.start()
        try:
            source.producer.send_message(Message(source.topic, b"passes"))
            eventually(has_one)
            proxy.swallow(packets=True)
            for _ in range(LARGE):
                source.producer.send_message(Message(source.topic, bytes(900_000)))
            eventually(lambda: "takes no message" in program.log.read_text())
            program.ask_to_stop()
            eventually(lambda: not program.is_running(), within_seconds=120)
            status = program.returncode
        finally:
            program.kill()

    assert status == 0
