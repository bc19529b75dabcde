"""The programs of the page on other languages print what it says, where their language is installed."""

import os
import re
import shutil
import subprocess

import pytest

from mqbroker.embedded.commands import ROOT
from tests.broker.running import API_KEY, RunningBroker
from tests.docs.stories import BRIEF_JAVA

PAGE = (ROOT / "docs" / "other-languages.md").read_text(encoding="utf-8")
PROGRAMS = ROOT / "examples" / "languages"
COMMANDS = {"Shop.java": ("java",), "shop.mjs": ("node",), "shop.go": ("go", "run")}
MOST_LINES = 150


def test_the_page_names_each_program_and_none_is_long() -> None:
    assert {path.name for path in PROGRAMS.iterdir()} == set(COMMANDS)
    assert set(re.findall(r"\(\.\./examples/languages/([\w.]+)\)", PAGE)) == set(COMMANDS)
    assert all(len((PROGRAMS / name).read_text().splitlines()) <= MOST_LINES for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_program_of_another_language_prints_what_the_page_says(broker: RunningBroker, name: str) -> None:
    if shutil.which(COMMANDS[name][0]) is None:
        pytest.skip(f"{COMMANDS[name][0]} is not installed")
    [printed] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)

    done = subprocess.run(
        [*COMMANDS[name], PROGRAMS / name],
        env={**os.environ, **BRIEF_JAVA, "MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    # Messages of several queues come in any order.
    assert sorted(done.stdout.splitlines()) == sorted(printed.splitlines())
