"""The private PostgreSQL keeps what was committed, through every way a start or an end can go wrong."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mqbroker.embedded.errors import ServerFailed
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.processes import identity, launch
from mqbroker.embedded.servers import postgres
from tests.cli.conftest import Eventually, Run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the files of a database that was never started."""
    server = postgres.Server(tmp_path_factory.mktemp("made") / "data folder")
    server.prepare()
    return server.folder.path


@pytest.fixture
def server(made: Path, folder: DataFolder) -> Iterator[postgres.Server]:
    """A server whose files are there: a copy spares each test the second of making them."""
    # With their owners.
    subprocess.run(["cp", "-a", f"{made}/.", str(folder.path)], check=True)
    server = postgres.Server(folder.path)
    yield server
    server.stop()


@pytest.fixture
def new(folder: DataFolder) -> Iterator[postgres.Server]:
    """A server whose files are made by its first start."""
    server = postgres.Server(folder.path)
    yield server
    server.stop()


def ask(server: postgres.Server, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def test_server_is_durable_in_utf8_and_not_run_by_a_superuser(server: postgres.Server) -> None:
    server.start()

    assert ask(server, "SHOW fsync") == [("on",)]
    assert ask(server, "SHOW synchronous_commit") == [("on",)]
    assert ask(server, "SHOW server_encoding") == [("UTF8",)]
    assert ask(server, "SELECT usesuper, usecreatedb FROM pg_user WHERE usename = current_user") == [(False, True)]


def test_a_wrong_password_is_refused(server: postgres.Server) -> None:
    server.start()

    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url, password="guessed")


def test_what_was_committed_outlives_kill_9_of_the_server(server: postgres.Server) -> None:
    server.start()
    ask(server, "CREATE TABLE kept (n int)")
    for n in range(3):
        ask(server, f"INSERT INTO kept VALUES ({n})")

        server.kill()
        server.start()

    assert ask(server, "SELECT n FROM kept ORDER BY n") == [(0,), (1,), (2,)]


def test_a_second_start_keeps_port_password_and_data(server: postgres.Server, folder: DataFolder) -> None:
    server.start()
    ask(server, "CREATE TABLE kept ()")
    url = server.url
    server.stop()

    again = postgres.Server(folder.path)
    again.start()

    assert again.url == url
    assert ask(again, "SELECT count(*) FROM kept") == [(0,)]
    again.stop()


def test_a_first_start_that_was_killed_is_begun_again(
    new: postgres.Server, run_python: Run, folder: DataFolder
) -> None:
    start = (
        "import pathlib, sys; from mqbroker.embedded.servers.postgres import Server; "
        "Server(pathlib.Path(sys.argv[1])).start()"
    )
    first = run_python("-c", start, str(folder.path))
    # On a busy machine the start may pass the middle before the next poll: that start may be killed, too.
    while not ((folder.path / "postgres.new" / "PG_VERSION").exists() or (folder.path / "postgres").exists()):
        assert first.poll() is None
    first.kill()
    first.wait()

    new.start()

    assert ask(new, "SELECT current_database()") == [("mqbroker",)]


def test_a_process_file_that_names_another_process_does_not_stop_the_start(server: postgres.Server) -> None:
    server.start()
    server.kill()
    file = server.data / "postmaster.pid"
    stranger = os.getpid()
    file.write_text("\n".join([str(stranger), *file.read_text().splitlines()[1:]]))

    server.start()

    assert ask(server, "SELECT 1") == [(1,)]


def test_a_port_that_was_taken_meanwhile_is_given_up_for_a_free_one(server: postgres.Server) -> None:
    server.start()
    server.stop()
    port = server.folder.port("postgres")
    with socket.create_server(("127.0.0.1", port)):
        server.start()

    assert server.folder.port("postgres") != port
    assert ask(server, "SELECT 1") == [(1,)]


def test_a_start_that_cannot_succeed_says_why_in_one_sentence(server: postgres.Server) -> None:
    (server.data / "PG_VERSION").write_text("9.6\n")

    with pytest.raises(ServerFailed) as refusal:
        server.start()

    assert "database files are incompatible with server" in str(refusal.value)
    assert str(server.child.log) in str(refusal.value)


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root has to change its user")
def test_root_finds_a_way_with_and_without_user_namespaces(server: postgres.Server) -> None:
    for way in ("unprivileged", "namespace", "unprivileged"):
        server.stop()
        server = postgres.Server(server.folder.path)
        server.way = way
        server.start()

        assert ask(server, "SELECT 1") == [(1,)]
        assert server.data.stat().st_uid == (launch.UNPRIVILEGED_USER if way == "unprivileged" else 0)
    server.stop()


def test_the_server_ends_with_the_process_that_started_it(
    run_python: Run, folder: DataFolder, eventually: Eventually
) -> None:
    start = (
        "import sys, pathlib; from mqbroker.embedded.servers import postgres; "
        "server = postgres.Server(pathlib.Path(sys.argv[1])); server.start(); print(server.pid, flush=True); input()"
    )
    starter = run_python("-c", start, str(folder.path))
    assert starter.stdout
    pid = int(starter.stdout.readline())

    os.kill(starter.pid, signal.SIGKILL)

    eventually(lambda: identity.of(pid) is None)
    assert not Path(folder.path / "postgres" / "postmaster.pid").exists(), "it had the time to flush"
