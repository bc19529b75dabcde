"""Probes: whether the broker lives and is ready."""

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.broker import databases
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer, problem
from tests.control.conftest import SETTINGS
from tests.control.operators import Operator

NOBODY = "redis://127.0.0.1:9/0"


def test_a_living_broker_says_so_to_anybody(stranger: Operator) -> None:
    assert stranger.reads("/healthz") == {"status": "alive"}


def test_a_ready_broker_says_so_to_anybody(stranger: Operator) -> None:
    assert stranger.reads("/readyz")["status"] == "ready"


def test_a_prober_that_names_no_host_is_answered(broker: RunningBroker) -> None:
    address = urlsplit(broker.url)
    with socket.create_connection((address.hostname, address.port), timeout=120) as line:
        line.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        answer = line.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b'{"status":"alive"}')


@pytest.mark.chaos
def test_a_broker_without_its_tables_or_its_database_is_alive_and_not_ready(tmp_path: Path) -> None:
    with databases.fresh() as url:
        running = RunningBroker(tmp_path, url, NOBODY, SETTINGS, tasks=False)
        stranger = Operator(running.url, None)
        running.webs[0].start()
        try:
            eventually(lambda: answers(stranger), within_seconds=60)

            unprepared = stranger.get("/readyz")
            running.prepare()
            prepared = stranger.get("/readyz")
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
                databases.shut(server, url.rpartition("/")[2])
            away = stranger.get("/readyz")

            assert "migrations are not applied: " in unprepared.problem["reasons"][0]
            assert (prepared.status, prepared.document["status"]) == (200, "ready")
            assert prepared.document["warnings"] == [
                "Redis does not answer (ConnectionError): checks and delays are late by seconds"
            ]
            reason = "the database does not answer as it should (OperationalError)"
            assert away.problem == problem(503, "system_busy", f"Not ready: {reason}.", reasons=[reason])
            assert away.headers["retry-after"] == "1"
            assert stranger.reads("/healthz") == {"status": "alive"}
            assert busy(Operator(running.url, API_KEY).get("/v1/topics"))
        finally:
            running.close()


@pytest.mark.chaos
def test_a_broker_whose_database_hangs_says_so_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"postgresql://mqbroker@127.0.0.1:{hanging.getsockname()[1]}/mqbroker"
        running = RunningBroker(tmp_path, url, NOBODY, SETTINGS, tasks=False)
        running.webs[0].start()
        try:
            eventually(lambda: answers(Operator(running.url, None)), within_seconds=60)
            with socket.create_connection(("127.0.0.1", urlsplit(running.url).port), timeout=120) as line:
                line.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
                answer = line.makefile("rb").read()
        finally:
            running.close()

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"the database does not answer as it should (ConnectionTimeout)" in answer


def answers(stranger: Operator) -> bool:
    """Whether the web process listens."""
    try:
        return stranger.get("/healthz").status == 200
    except OSError:
        return False


def busy(answer: Answer) -> bool:
    """Whether the answer says that the database is away."""
    # A key that the process does not know is looked up by its pool, which waits for a connection first.
    return any(
        answer.problem
        == problem(503, "system_busy", f"The database is away ({why}): nothing was stored, try again in a second.")
        for why in ("OperationalError", "PoolTimeout")
    )
