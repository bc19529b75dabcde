"""The port: a broker has it alone, also against programs that would share it."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqbroker.embedded.servers import postgres
from tests.broker import databases, prepared_servers
from tests.broker.ports import free_port
from tests.broker.running import QUICK, RunningBroker
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def running(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One web process on a database of its own."""
    with databases.copied(prepared) as url:
        broker = RunningBroker(tmp_path_factory.mktemp("port"), url, os.environ["REDIS_URL"], QUICK, tasks=False)
        with broker:
            yield broker


def port_of(running: RunningBroker) -> int:
    return int(running.url.rpartition(":")[2])


def sharing() -> socket.socket:
    """A socket that would share its port."""
    other = socket.socket()
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return other


def test_no_other_program_can_take_the_port_beside_the_broker(running: RunningBroker) -> None:
    with sharing() as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", port_of(running)))


def test_a_web_process_refuses_a_port_that_a_broker_has(running: RunningBroker, run_python: Run) -> None:
    web = run_python("-m", "mqbroker.web", "--port", str(port_of(running)), DATABASE_URL=running.database_url)

    out, err = web.communicate(timeout=300)

    assert (web.returncode, out) == (1, "")
    assert err == (
        f"mqbroker.web: Port {port_of(running)} of 127.0.0.1 cannot be used (Address already in use): "
        "stop what uses it, or give another --port.\n"
    )
    assert running.wire().get("/healthz").status == 200


def test_a_web_process_refuses_a_port_that_its_holder_would_share(run_python: Run) -> None:
    with sharing() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        web = run_python("-m", "mqbroker.web", "--port", str(port))

        _, err = web.communicate(timeout=300)
        assert web.returncode == 1
        assert f"Port {port} of 127.0.0.1 cannot be used (Address already in use)" in err


def test_of_two_brokers_that_start_at_once_one_has_the_port(run_python: Run, tmp_path: Path) -> None:
    port = str(free_port())
    given = ("-m", "mqbroker.embedded.cli", "up", "--no-demo", "--port", port, "--data-dir")
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        prepared_servers.copied(postgres.Server(folder))
    both = [run_python(*given, str(folder), DATABASE_URL="", REDIS_URL="") for folder in folders]

    refused, served = sorted(both, key=until_it_serves)

    _, err = refused.communicate(timeout=300)
    assert refused.returncode == 1
    assert err.splitlines()[-1] == (
        f"mq: Port {port} of 127.0.0.1 cannot be used (Address already in use): "
        "stop what uses it, or give another --port."
    )
    served.send_signal(signal.SIGTERM)
    served.communicate(timeout=300)
    assert served.returncode == 0


def until_it_serves(process: subprocess.Popen[str]) -> bool:
    """Whether a broker says where to look; one that is refused says nothing."""
    assert process.stdout
    return bool(process.stdout.readline())


@pytest.mark.chaos
def test_a_web_process_that_was_killed_serves_again_on_its_port(running: RunningBroker) -> None:
    web = running.webs[0]
    web.kill()

    web.start()

    running.wait_until_ready()
    assert running.wire().get("/healthz").status == 200
