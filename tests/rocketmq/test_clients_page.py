"""The page on RocketMQ's own clients: its program runs as it stands there, beside what its commands start."""

import os
import subprocess
from pathlib import Path

from mqbroker.rocketmq import service
from tests.broker.running import API_KEY
from tests.docs.pages import page
from tests.rocketmq import official
from tests.rocketmq.conftest import Gateway

PAGE = page("docs/rocketmq-clients.md")


def test_the_program_prints_what_the_page_shows(plain: Gateway, installed: Path, tmp_path: Path) -> None:
    language = official.python(installed)
    [program], [shown] = PAGE.blocks_of("python"), PAGE.blocks_of("text")
    (tmp_path / ".mqbroker" / "secrets").mkdir(parents=True)
    (tmp_path / ".mqbroker" / "secrets" / "api-key").write_text(API_KEY)
    (tmp_path / "orders.py").write_text(program.replace("127.0.0.1:8081", plain.address))

    ran = subprocess.run(
        [language.command[0], "orders.py"],
        cwd=tmp_path,
        env=os.environ | language.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert shown.strip() in ran.stdout, ran.stderr[-2000:]


def test_the_package_is_that_of_the_tests() -> None:
    assert f"pip install {official.PYTHON}" in PAGE.text
    assert official.NODE.rsplit("@")[-1] in PAGE.text


def test_every_call_that_is_served_stands_on_the_page() -> None:
    table = PAGE.section("What is served").text

    assert {call for call in service.handlers(read_whole=True) if call not in table} == set()
