"""Connections of RocketMQ's clients: so many of a port, and so many of one address, with a key and without one."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqbroker.embedded import commands
from tests.broker.burdens import WITHOUT_A_KEY_BYTES, hold
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.rocketmq.burdens import burden_of
from tests.rocketmq.conftest import SERVERS, Gateway, running
from tests.rocketmq.stub import Client, message
from tools.bench.rocketmq import PREFACE, SETTINGS, frame

OF_PORT, OF_ADDRESS = 24, 8
OK = 20000


@contextlib.contextmanager
def connected(port: int, count: int, address: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """So many connections that say nothing, from one address."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=(address, 0)))
            for _ in range(count)
        ]


def open_ones(connections: list[socket.socket]) -> int:
    """How many of them the process has not ended."""
    return sum(is_open(each) for each in connections)


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        # What the server says of itself first.
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@pytest.mark.parametrize("server", SERVERS)
def test_one_address_has_its_share_of_the_connections_and_a_port_its_own(
    server: str, broker: RunningBroker, tmp_path: Path, orders: str
) -> None:
    limits = {"ROCKETMQ_CONNECTIONS": str(OF_PORT), "CONNECTIONS_PER_ADDRESS": str(OF_ADDRESS)}
    with running(broker, tmp_path, ROCKETMQ_SERVER=server, **limits) as gateway:
        with connected(gateway.port, 20, "127.0.0.2") as crowd, Client(gateway.address) as client:
            eventually(lambda: open_ones(crowd) == OF_ADDRESS, within_seconds=20)
            assert client.send(message(orders, b"tea")).status.code == OK

            with connected(gateway.port, 8, "127.0.0.3") as second, connected(gateway.port, 12, "127.0.0.4") as third:
                everyone = [*crowd, *second, *third]
                # The client has one of the port's.
                eventually(lambda: open_ones(everyone) == OF_PORT - 1, within_seconds=20)
                assert client.send(message(orders, b"tea")).status.code == OK

        # The places of those that have gone are free again.
        with connected(gateway.port, OF_ADDRESS, "127.0.0.2") as again:
            eventually(lambda: open_ones(again) == OF_ADDRESS, within_seconds=20)


@pytest.mark.parametrize("says", [b"", PREFACE + frame(SETTINGS, 0, 0, b"")], ids=["nothing", "its preface"])
def test_connections_without_a_key_take_a_bounded_part_of_memory(
    says: bytes, broker: RunningBroker, plain: Gateway
) -> None:
    def open_many() -> None:
        with connected(plain.port, 3000, "127.0.0.2") as opened:
            for connection in opened:
                with contextlib.suppress(OSError):
                    connection.sendall(says)
            eventually(lambda: open_ones(opened) <= 1536, within_seconds=20)

    hold(burden_of(plain, broker, open_many), WITHOUT_A_KEY_BYTES)


def test_the_native_server_is_named_with_the_extra_that_installs_it(broker: RunningBroker, tmp_path: Path) -> None:
    hidden = tmp_path / "pygrpc_native"
    hidden.mkdir()
    (hidden / "__init__.py").write_text("raise ImportError('it is not installed')")
    environment = os.environ | broker.environment | {"MQBROKER_ROCKETMQ_SERVER": "native", "PYTHONPATH": str(tmp_path)}

    started = subprocess.run(
        commands.rocketmq(free_port()), cwd=broker.checkout, env=environment, capture_output=True, text=True, timeout=60
    )

    assert started.returncode == 1
    assert started.stderr.splitlines()[-1] == (
        "mqbroker.rocketmq: MQBROKER_ROCKETMQ_SERVER is native, and pygrpc-native is not installed: install mqbroker "
        "with its extra rocketmq-native, or leave the setting out."
    )
