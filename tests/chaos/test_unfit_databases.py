"""A database that cannot keep what it acknowledges: the broker does not start on it, and /readyz names the reason."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.servers import postgres
from store.db import guards
from tests.broker import databases, forks, poolers, prepared_servers
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Answer, Wire, problem


class Careless(postgres.Server):
    """A PostgreSQL whose `fsync` may be changed while it runs."""

    settings: ClassVar = {name: value for name, value in postgres.SETTINGS.items() if name != "fsync"}

    @property
    def superuser_url(self) -> str:
        return self.url.replace("//mqbroker:", "//postgres:")

    @contextmanager
    def set_to(self, name: str, value: str) -> Iterator[None]:
        """The server with a setting changed, until the end of the block."""
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            self._set(connection, name, value)
            yield
            self._set(connection, name, "on")

    @staticmethod
    def _set(connection: psycopg.Connection, name: str, value: str) -> None:
        connection.execute(f"ALTER SYSTEM SET {name} = {value}".encode())
        connection.execute("SELECT pg_reload_conf()")
        eventually(lambda: connection.execute(f"SHOW {name}".encode()).fetchone() == (value,))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Careless]:
    server = prepared_servers.started(Careless(tmp_path_factory.mktemp("careless")))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def running(server: Careless, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker that was started while all was well."""
    folder = tmp_path_factory.mktemp("running")
    with RunningBroker(folder, server.url, os.environ["REDIS_URL"], tasks=False) as running:
        yield running


def ready(running: RunningBroker) -> Answer:
    return Wire(running.url, None).get("/readyz")


def refused_starts(running: RunningBroker) -> list[str]:
    """What a web process, a worker and the preparation say that do not start; they must end by themselves."""
    web = commands.python("-m", "mqbroker.web", "--port", str(free_port()))
    started = (web, commands.worker(), commands.manage("prepare"))
    with ThreadPoolExecutor(len(started)) as starts:
        ended = list(starts.map(lambda words: forks.run(words, running.environment), started))
    assert all(one.returncode for one in ended), [one.returncode for one in ended]
    return [one.stdout + one.stderr for one in ended]


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_keep_commits_is_refused_and_named(
    server: Careless, running: RunningBroker, name: str
) -> None:
    reason = guards.OFF.format(name)
    assert ready(running).status == 200

    with server.set_to(name, "off"):
        assert ready(running).problem == problem(503, "system_busy", f"Not ready: {reason}.", reasons=[reason])
        for said in refused_starts(running):
            assert reason in said

    assert ready(running).status == 200


@pytest.mark.parametrize(
    ("mode", "ignored", "reason"),
    [
        ("transaction", "", guards.STRIPPED),
        ("transaction", ",options", guards.STRIPPED),
        ("session", "", guards.STRIPPED),
    ],
)
def test_a_proxy_that_does_not_work_is_refused_and_named(
    running: RunningBroker, tmp_path: Path, mode: str, ignored: str, reason: str
) -> None:
    program = poolers.debians()
    with poolers.pooler(tmp_path, running.database_url, mode, program=program, ignored=ignored) as pooler:
        behind = RunningBroker(tmp_path / "behind", pooler.url, os.environ["REDIS_URL"], tasks=False)
        poolers.ready(pooler)

        for said in refused_starts(behind):
            assert reason in said
            if ignored:
                assert guards.POOLED in said


def test_a_full_disk_is_named_by_the_refusal_and_by_readiness(
    server: Careless, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The tables are on a disk of their own, the log of PostgreSQL is not: a server without room for that stops."""
    if os.getuid() != 0:
        pytest.skip("only root may mount a small disk")
    small = tmp_path_factory.mktemp("small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0777", "tmpfs", str(small)], check=True)
    try:
        (small / "tables").mkdir(mode=0o700)
        with psycopg.connect(server.superuser_url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{small / 'tables'}'".encode())
            connection.execute("CREATE DATABASE cramped TABLESPACE small OWNER mqbroker")
        url = server.url.rpartition("/")[0] + "/cramped"
        cramped = RunningBroker(tmp_path, url, os.environ["REDIS_URL"], tasks=False)
        cramped.prepare()
        with cramped:
            fills(cramped, small)
        with psycopg.connect(server.superuser_url, autocommit=True) as connection:
            databases.drop(connection, "cramped")
            connection.execute("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)


def fills(cramped: RunningBroker, small: Path) -> None:
    wire = Wire(cramped.url, API_KEY)
    # Nothing that PostgreSQL could compress.
    large = {"topic": "orders", "body": secrets.token_urlsafe(400_000)}
    assert wire.post("/v1/messages", large).status == 201

    full = problem(
        503, "system_busy", "The database's disk is full: nothing was stored. Free some space on its server."
    )
    warnings = ["the database's disk is full: writes are refused until there is room on its server"]
    probe = Wire(cramped.url, None)
    # A machine that is busy otherwise may have another reason to refuse, or let the database answer a probe too late.
    eventually(lambda: wire.post("/v1/messages", large).document == full)
    eventually(lambda: probe.get("/readyz").document == {"status": "ready", "warnings": warnings})
    assert "Traceback" not in cramped.log()
