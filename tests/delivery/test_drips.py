"""Callers that take large pages a few bytes at a time: they shut no other key out of reading.

`MQ_BURDENS=1 ./mq test tests/delivery/test_drips.py -s` has 200 of them for 45 s, on a quiet machine.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from mqbroker_client import Broker, Consumer, Producer

from tests.broker import burdens, characters, stalled
from tests.broker.burdens import MEBIBYTE
from tests.broker.running import QUICK, RunningBroker

SENT, BODY = 6, b"x" * (3 * MEBIBYTE)
CALLERS = 200 if burdens.IS_STRICT else 40
DRIPPED_SECONDS = 45.0 if burdens.IS_STRICT else 6.0
# What each of them takes in a second.
TAKEN_BYTES = 64
# A receive of one byte takes no longer than this.
PROMISED_SECONDS = 2.0


@pytest.fixture(scope="module")
def web(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A web process of its own, as it is set without a setting, on the broker's database."""
    folder = tmp_path_factory.mktemp("drips")
    with RunningBroker(folder, broker.database_url, broker.environment["REDIS_URL"], QUICK, tasks=False) as web:
        yield web


class Drip:
    """A caller that asks for a page and takes TAKEN_BYTES of it each second; given up, it asks again."""

    def __init__(self, url: str, request: bytes) -> None:
        parts = urlsplit(url)
        self._place = (str(parts.hostname), int(parts.port or 80))
        self._request = request
        self._caller = self._asked()
        # How often it was given up, or refused.
        self.ended = 0

    def _asked(self) -> socket.socket:
        caller = socket.socket()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, stalled.RECEIVED_BYTES)
        caller.connect(self._place)
        caller.sendall(self._request)
        caller.setblocking(False)
        return caller

    def take(self) -> None:
        """Takes the bytes of one second."""
        try:
            if self._caller.recv(TAKEN_BYTES):
                return
        except BlockingIOError:
            return
        except ConnectionError:
            pass
        self.close()
        self.ended += 1
        self._caller = self._asked()

    def close(self) -> None:
        self._caller.close()


@contextlib.contextmanager
def dripping(web: RunningBroker, request: bytes) -> Iterator[list[Drip]]:
    """The callers, which take on until the end of the block."""
    over = threading.Event()
    drips = [Drip(web.url, request) for _ in range(CALLERS)]

    def take() -> None:
        while not over.wait(1.0):
            for drip in drips:
                drip.take()

    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield drips
    finally:
        over.set()
        thread.join()
        for drip in drips:
            drip.close()


def test_pages_that_are_taken_by_drips_shut_no_other_key_out(web: RunningBroker) -> None:
    large, small = characters.name("large"), characters.name("small")
    producer = Producer(web.client(), characters.name("order-service"))
    for number in range(SENT):
        producer.send(large, b"%d" % number + BODY, queue_id=0)
    other = Broker(web.url, characters.key_of(web, "produce:*", "read:*", "consume:*"), timeout_seconds=30)
    sender, consumer = Producer(other, characters.name("p")), Consumer(other, characters.name("c"))
    page = stalled.get(f"/v1/topics/{large}/queues/0/messages?offset=0&max={SENT}", characters.key_of(web, "read:*"))
    seconds: list[float] = []

    def receive(drips: list[Drip]) -> None:
        end = time.monotonic() + DRIPPED_SECONDS
        while time.monotonic() < end:
            sender.send(small, b"1")
            began = time.monotonic()
            [delivery] = consumer.receive(small, wait_seconds=5)
            consumer.ack([delivery])
            seconds.append(time.monotonic() - began)
            time.sleep(0.3)
        print(f"{len(seconds)} receives of one byte, the longest {max(seconds):.3f} s;", end=" ")
        print(f"{sum(drip.ended for drip in drips)} pages given up or refused")

    def load() -> None:
        with dripping(web, page) as drips:
            receive(drips)

    burden = burdens.burden_of(web, load)

    assert max(seconds) < PROMISED_SECONDS
    burdens.hold(burden, burdens.WITH_A_KEY_BYTES)
