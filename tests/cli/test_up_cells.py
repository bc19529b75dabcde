"""`./mq up --cells N` makes cells of databases of the private server, and `./mq cells` shows them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.servers import binaries, postgres
from tests.broker import forks, prepared_servers
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.cli.conftest import Run, running
from tests.cli.test_up import KEY, Up

FOLLOWS = "SELECT bool_and(replay_lsn >= pg_current_wal_lsn()) FROM pg_stat_replication"

GIVEN = {"DATABASE_URL": "", "REDIS_URL": "", "MQ_CALLED_FROM": "/"}


@dataclass(frozen=True)
class Cells:
    """A broker that was started with two cells and started again, at another port of its server.

    It runs for several tests in their order.
    """

    run_python: Run
    up: Up
    made: list[list[str]]

    def starts(self, *words: str) -> "subprocess.Popen[str]":
        """`./mq cells …` of this broker."""
        return self.run_python(
            "-m", "mqbroker.embedded.cli", "cells", "--data-dir", str(self.up.folder.path), *words, **GIVEN
        )

    def listed(self) -> list[list[str]]:
        """The rows of `./mq cells list`: name, topics, messages/s, epoch, standby, state."""
        process = self.starts("list")
        printed, complaint = process.communicate()
        assert process.returncode == 0, complaint
        return [line.split(maxsplit=5) for line in printed.splitlines()[1:-1]]

    def has_followers(self) -> bool:
        """Whether a standby has all of the WAL: this costs a hundredth of what `./mq cells list` does."""
        url = f"postgresql://mqbroker:{self.up.folder.secret('postgres')}@127.0.0.1:{self.up.folder.port('postgres')}"
        with psycopg.connect(f"{url}/mqbroker") as connection:
            return connection.execute(FOLLOWS).fetchone() == (True,)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cells]:
    with running() as run:
        up = Up(run, tmp_path_factory.mktemp("cells") / "data folder")
        prepared_servers.copied(postgres.Server(up.folder.path))
        up.start("--cells", "2", "--api-key", KEY)
        try:
            assert up.send("coupons") == 201
            made = Cells(run, up, []).listed()
        finally:
            up.stop()
        # As when a program has taken the port before.
        up.folder.choose_port("postgres")
        up.start()
        try:
            yield Cells(run, up, made)
        finally:
            up.stop()


def test_up_has_as_many_cells_as_were_asked_for_and_keeps_them(installation: Cells) -> None:
    assert installation.listed() == installation.made
    assert [[name, epoch, standby, state] for name, _, _, epoch, standby, state in installation.made] == [
        ["c0", "0", "-", "takes new topics"],
        ["c1", "0", "-", "ready"],
    ]


def test_cells_are_made_on_no_server_that_the_user_names(run_python: Run, tmp_path: Path) -> None:
    words = (
        "-m",
        "mqbroker.embedded.cli",
        "up",
        "--cells",
        "2",
        "--data-dir",
        str(tmp_path / "folder"),
        "--port",
        str(free_port()),
    )

    process = run_python(*words, DATABASE_URL="postgresql://127.0.0.1:1/shop", REDIS_URL="", MQ_CALLED_FROM="/")
    _, complaint = process.communicate()

    assert process.returncode == 1
    assert complaint.splitlines()[-1] == (
        "mq: --cells makes databases of the private PostgreSQL, and DATABASE_URL names another server: make databases "
        "there, and add each by `./mq cells add NAME URL`."
    )


def test_a_standby_of_the_private_server_becomes_a_cell_and_is_started_again(
    installation: Cells, tmp_path: Path
) -> None:
    up, place = installation.up, tmp_path / "standby"

    def run(*more: str, said: str = "") -> str:
        done, complaint = installation.starts(*more).communicate(said)
        return done + complaint

    def standby(said: str) -> subprocess.Popen[str]:
        follows = installation.starts("standby", "c1", "--to", str(place))
        assert follows.stdout
        assert any(line.startswith(f"Standby  {said}") for line in follows.stdout)
        return follows

    assert "New topics go to c1." in run("open", "c1")
    assert up.send() == 201
    follows = standby("follows")
    # It follows; a busy machine has it behind for a moment.
    eventually(lambda: installation.has_followers() and [row[4] for row in installation.listed()] == ["0B", "0B"])
    url = (place / "secrets" / "url").read_text()
    assert "c1 into c2: done." in run("split", "c1", "--into", "c2", "--home", "orders", "--standby", "-", said=url)
    assert up.send() == 201
    follows.send_signal(signal.SIGTERM)
    assert follows.wait(120) == 0
    assert up.send() != 201
    again = standby("was promoted")
    eventually(lambda: up.send() == 201)
    again.send_signal(signal.SIGTERM)
    assert "The private PostgreSQL has no database of the cell c7" in run("standby", "c7", "--to", str(place) + "-7")


@pytest.mark.parametrize(
    ("data_folder", "words", "said", "unsaid"),
    [
        ("/folder", (), ("usage: mq cells ", "standby"), "manage.py"),
        ("", (), ("usage: manage.py cells ",), "copy the private PostgreSQL"),
        ("/folder", ("split",), ("usage: mq cells split ", "--home HOME", "--home shop --home orders"), "manage.py"),
        ("/folder", ("topics",), ("usage: mq cells topics ", "letters, digits and % | _ -, such as shop"), "manage.py"),
    ],
)
def test_the_help_of_cells_is_that_of_the_command_that_was_typed(
    data_folder: str, words: tuple[str, ...], said: tuple[str, ...], unsaid: str
) -> None:
    environment = {**os.environ, "MQBROKER_DATA_DIR": data_folder, "COLUMNS": "200"}

    done = forks.run(commands.manage("cells", *words, "--help"), environment)

    assert done.returncode == 0, done.stderr
    assert [words for words in said if words not in done.stdout] == []
    assert unsaid not in done.stdout


def test_the_private_postgresql_has_what_dumps_it() -> None:
    dumping = binaries.folder() / "pg_dump"

    done = subprocess.run(
        [dumping, "--schema-only", os.environ["DATABASE_URL"]], capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stderr
    assert "PostgreSQL database dump complete" in done.stdout
