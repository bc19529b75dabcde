"""./mq up --rocketmq-port: RocketMQ's clients are served beside HTTP, and by nothing where it is not asked for."""

import socket
from pathlib import Path

import grpc
import pytest

from mqbroker.embedded.servers import postgres
from tests.broker import prepared_servers
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.cli.conftest import Run
from tests.cli.test_up import KEY, Up
from tests.rocketmq.stub import Client, message


def test_a_client_sends_what_a_client_receives(run_python: Run, tmp_path: Path) -> None:
    up, port = Up(run_python, tmp_path / "data folder"), free_port()
    prepared_servers.copied(postgres.Server(up.folder.path))

    lines = up.start("--rocketmq-port", str(port), "--api-key", KEY)
    try:
        assert f"RocketMQ 127.0.0.1:{port}, access key and access secret: the API key" in lines
        with Client(f"127.0.0.1:{port}", KEY) as client:
            eventually(lambda: is_sent(client), within_seconds=60)
            assert [one.body for one in client.received("coupons", "orders")] == [b"tea"]
        assert up.pids().keys() >= {"rocketmq", "web", "worker", "beat"}
    finally:
        assert up.stop() == 0

    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def is_sent(client: Client) -> bool:
    try:
        return int(client.send(message("orders", b"tea")).status.code) == 20000
    except grpc.RpcError:
        return False


def test_a_port_that_is_taken_is_said_before_anything_starts(run_python: Run, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        words = ("--port", str(free_port()), "--rocketmq-port", str(port), "--data-dir", str(tmp_path / "folder"))

        refused = run_python(
            "-m", "mqbroker.embedded.cli", "up", *words, DATABASE_URL="", REDIS_URL="", MQ_CALLED_FROM="/"
        )

        _, complaint = refused.communicate(timeout=300)
    assert refused.returncode == 1
    assert complaint.splitlines()[-1] == (
        f"mq: Port {port} of 127.0.0.1 cannot be used (Address already in use): stop what uses it, or give another "
        "--rocketmq-port."
    )


@pytest.mark.parametrize("given", ["0", "65536", "many"])
def test_a_port_that_is_none_is_refused(given: str, run_python: Run, tmp_path: Path) -> None:
    words = ("--rocketmq-port", given, "--data-dir", str(tmp_path / "folder"))

    refused = run_python("-m", "mqbroker.embedded.cli", "up", *words, DATABASE_URL="", REDIS_URL="", MQ_CALLED_FROM="/")

    _, complaint = refused.communicate(timeout=120)
    assert refused.returncode == 2
    assert "--rocketmq-port" in complaint
