"""The process for RocketMQ's clients, beside the broker of the tests, by either of its servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from embedded import commands
from mqbroker.rocketmq.protocol import service_pb2
from tests.broker import forks
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.rocketmq.stub import Client


class Gateway:
    """The process, on a port of its own. It may be killed and started again."""

    def __init__(self, broker: RunningBroker, folder: Path, **settings: str) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log = folder / f"rocketmq-{self.port}.log"
        environment = broker.environment | {f"MQBROKER_{name}": value for name, value in settings.items()}
        self.child = forks.ForkedChild("rocketmq", commands.rocketmq(self.port), environment, self.log, broker.checkout)

    def start(self) -> None:
        """Returns once it answers."""
        self.child.start()
        eventually(self._answers, within_seconds=60)

    def _answers(self) -> bool:
        assert self.child.is_running(), self.child.last_lines()
        try:
            with Client(self.address) as client:
                return int(client.call("Heartbeat", service_pb2.HeartbeatRequest(), timeout=2).status.code) == 20000
        except grpc.RpcError:
            return False


@contextmanager
def running(broker: RunningBroker, folder: Path, **settings: str) -> Iterator[Gateway]:
    """The process with settings of its own, within the block. What it failed at is a failure of the test."""
    gateway = Gateway(broker, folder, **settings)
    try:
        gateway.start()
        yield gateway
    finally:
        gateway.child.ask_to_stop()
        gateway.child.stop()
    assert "Traceback" not in gateway.log.read_text(), gateway.log.read_text()[-3000:]


@pytest.fixture(scope="session")
def native(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The process that a start chooses: with the native server."""
    with running(broker, tmp_path_factory.mktemp("native")) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def plain(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The process with grpcio's server."""
    with running(broker, tmp_path_factory.mktemp("grpcio"), ROCKETMQ_SERVER="grpcio") as gateway:
        yield gateway


@pytest.fixture(params=["native", "plain"])
def gateway(request: pytest.FixtureRequest) -> Gateway:
    """The process by either server: the same tests hold for both."""
    found: Gateway = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Client]:
    """A client without anything of its own."""
    with Client(gateway.address) as client:
        yield client


@pytest.fixture
def other(gateway: Gateway) -> Iterator[Client]:
    """Another client, with another id and connection."""
    with Client(gateway.address) as client:
        yield client
