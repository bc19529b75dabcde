"""Diaries of the first hour: lines of the pages alone, typed in order, up to the first message that is received."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import packages
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.wire import Wire
from tests.docs import stories
from tests.docs.pages import Page, page
from tests.docs.reader import Reader, postgres

SQL, CLIENTS, START = page("docs/sql.md"), page("docs/rocketmq-clients.md"), page("README.md").section("Start")
NAME = re.compile(r"\A(?:#|//) (orders\.\w+)\n")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A reader in a checkout, where `./mq up` runs as the page on RocketMQ's clients starts it, until Ctrl-C."""
    home = stories.checkout(tmp_path_factory.mktemp("reader"))
    web, rocketmq = free_port(), free_port()
    made = Reader(home, {"127.0.0.1:8000": f"127.0.0.1:{web}", "8081": str(rocketmq)})
    words = made.writes(CLIENTS.blocks_of("sh")[0]).split()
    with (home / "up.out").open("w") as out, (home / "up.log").open("w") as log:
        up = subprocess.Popen([*words, "--port", str(web)], cwd=home, env=stories.BARE, stdout=out, stderr=log)
        try:
            eventually(lambda: _answers(web) or up.poll() is not None, within_seconds=120)
            assert up.poll() is None, (home / "up.log").read_text()
            yield made
        finally:
            up.send_signal(signal.SIGINT)
            code = up.wait(300)
        assert code == 0


def _answers(port: int) -> bool:
    try:
        return Wire(f"http://127.0.0.1:{port}", "").get("/readyz").status == 200
    except OSError:
        return False


def test_the_second_command_starts_the_broker_and_it_says_where_to_look(reader: Reader) -> None:
    [commands], [shown] = START.blocks_of("sh"), START.blocks_of("text")
    clone, up = commands.splitlines()
    assert clone == "git clone <this repository> mqbroker && cd mqbroker"
    assert CLIENTS.blocks_of("sh")[0].split()[:-2] == up.split()

    # One process more, and a line about it.
    def printed() -> list[str]:
        lines = (reader.home / "up.out").read_text().splitlines(keepends=True)
        return lines if len(lines) > len(shown.splitlines()) else []

    lines = [line for line in eventually(printed) if not line.startswith("RocketMQ ")]
    assert stories.agree(reader.writes(shown), "".join(lines)), lines


def test_a_message_that_psql_inserts_is_received(reader: Reader, tmp_path: Path) -> None:
    if shutil.which("psql") is None:
        packages.skip_for_want_of("postgresql-client", "psql")
    table, program = SQL.section("The table"), SQL.section("From a program")
    with postgres(tmp_path) as server:
        own = {"postgres:password": f"postgres:{server.password}", "shop-db": server.place}
        shop = Reader(reader.home, {**reader.own, **own})
        shop.saves("outbox.sql", *table.blocks_of("sql")[:2])

        printed = shop.types(*table.blocks_of("sh"), *program.blocks_of("sh"))

    assert "order 1" in printed.splitlines()[-1]


@pytest.mark.parametrize(("language", "install"), [("python", "pip install"), ("js", "npm install")])
def test_a_program_of_rocketmqs_client_prints_what_the_page_shows(reader: Reader, language: str, install: str) -> None:
    if language == "js" and shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    commands, program, shown = _program(CLIENTS, language)
    [name] = NAME.findall(program)
    reader.saves(name, program)

    printed = reader.types(_installed(reader, commands, install))

    assert shown in printed


def _installed(reader: Reader, commands: str, install: str) -> str:
    """Types the commands as far as the one that installs; returns those behind it."""
    ways = [(commands, stories.BARE)]
    if "MQ_LONG" not in os.environ and (by_uv := _by_uv(commands)) != commands:
        ways.insert(0, (by_uv, dict(os.environ)))
    for lines, variables in ways:
        [installs] = [line for line in lines.splitlines() if install in line]
        before, after = lines.split(installs)
        reader.types(before)
        if subprocess.run(installs.split(), cwd=reader.home, env=variables, capture_output=True).returncode == 0:
            return after
    pytest.skip(f"{installs} finds no package from here")


def _by_uv(commands: str) -> str:
    """The same without `venv` and `pip`, which take ten times the CPU; uv may not know their index."""
    uv = f"{sys.executable} -m uv --quiet"
    made = re.sub(r"^python3 -m venv (\w+)$", rf"{uv} venv \1", commands, flags=re.MULTILINE)
    return re.sub(r"^(\w+)/bin/pip install ", rf"{uv} pip install --python \1/bin/python ", made, flags=re.MULTILINE)


def _program(shown: Page, language: str) -> tuple[str, str, str]:
    """The commands, the program and its output: the blocks around the program."""
    blocks = shown.blocks
    at = next(number for number, block in enumerate(blocks) if block.language == language)
    commands, program, printed = blocks[at - 1 : at + 2]
    assert (commands.language, printed.language) == ("sh", "text")
    return commands.text, program.text, printed.text
