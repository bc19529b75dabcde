"""kill -9 of the process for RocketMQ's clients and of PostgreSQL, under load: nothing is lost, and checks go on."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import grpc
import pytest

from mqbroker.embedded.servers import postgres
from mqbroker.rocketmq.protocol.definition_pb2 import Message, MessageType
from tests.broker import prepared_servers
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.rocketmq import official
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import Client, message

pytestmark = pytest.mark.chaos

SENDERS = 4
BETWEEN_KILLS = 60
KILLS = ("gateway", "postgres", "gateway", "postgres", "gateway")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    """A PostgreSQL that may be killed."""
    server = prepared_servers.started(postgres.Server(tmp_path_factory.mktemp("postgres")))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def broker(server: postgres.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker on that PostgreSQL."""
    with RunningBroker(tmp_path_factory.mktemp("broker"), server.url, os.environ["REDIS_URL"]) as broker:
        yield broker


class Sender(threading.Thread):
    """Sends one message after the other, and repeats each under its id until it is acknowledged.

    Each fifth is a half message that nothing ends.
    """

    def __init__(self, address: str, topic: str, number: int) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.topic = topic
        self.number = number
        self.acknowledged: list[bytes] = []
        self.is_over = False

    def run(self) -> None:
        with Client(self.address) as client:
            count = 0
            while not self.is_over:
                body = b"%d-%d" % (self.number, count)
                kind = MessageType.TRANSACTION if count % 5 == 0 else MessageType.NORMAL
                given = message(self.topic, body, kind)
                while not self._is_sent(client, given):
                    time.sleep(0.05)
                self.acknowledged.append(body)
                count += 1

    @staticmethod
    def _is_sent(client: Client, given: Message) -> bool:
        with suppress(grpc.RpcError):
            return int(client.send(given).status.code) == 20000
        return False


def acknowledged(senders: Sequence[Sender]) -> int:
    """The number of messages that were acknowledged."""
    return sum(len(one.acknowledged) for one in senders)


def have_acknowledged(senders: Sequence[Sender], wanted: int) -> bool:
    return acknowledged(senders) >= wanted


def test_nothing_that_was_acknowledged_is_lost_and_each_half_is_decided(
    server: postgres.Server, broker: RunningBroker, installed: Path, tmp_path: Path, orders: str
) -> None:
    gateway = Gateway(broker, tmp_path)
    gateway.start()
    senders = [Sender(gateway.address, orders, number) for number in range(SENDERS)]
    try:
        with official.node(installed).starts(gateway.address) as checker:
            # Node's client opens its stream again at once; Python's does up to five minutes later.
            checker.do("produce", topics=[orders], answer="COMMIT")
            for sender in senders:
                sender.start()
            for kill in KILLS:
                eventually(
                    partial(have_acknowledged, senders, acknowledged(senders) + BETWEEN_KILLS), within_seconds=90
                )
                if kill == "gateway":
                    assert gateway.child.pid is not None
                    os.kill(gateway.child.pid, signal.SIGKILL)
                    gateway.child.stop()
                    gateway.start()
                else:
                    server.kill()
                    server.start()
            for sender in senders:
                sender.is_over = True
            for sender in senders:
                sender.join(120)
            sent = sorted(body for sender in senders for body in sender.acknowledged)
            with Client(gateway.address) as client:
                found = [one.body for one in client.all(len(sent), "coupons", orders, wait=20.0, timeout=60.0)]
                found += [one.body for one in client.received("coupons", orders, timeout=3)]
    finally:
        gateway.child.stop()

    assert sorted(found) == sent
    assert "Traceback" not in gateway.log.read_text(), gateway.log.read_text()[-3000:]
