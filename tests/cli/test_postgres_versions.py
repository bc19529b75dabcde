"""`./mq test --postgres 16` runs tests on a named version of PostgreSQL, and the page has a line for each version."""

import re
import subprocess
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT, python
from mqbroker.embedded.servers import binaries
from tests import servers
from tests.docs.pages import page
from tests.packages import skip_for_want_of

# Passes only on the version that it is told.
ASKS = """
import os, psycopg

def test_version():
    with psycopg.connect(os.environ["DATABASE_URL"]) as session:
        assert session.info.server_version // 10000 == {major}
"""
TABLE = "| 15.1 | 3.11.2 | 2020-01-01 | 7 passed |\n| 16.2 | 3.11.2 | 2020-01-01 | 7 passed |\n"
# The one of `./mq up`, and the first one that has a wheel of its own.
SHORT = (18, 16)


@pytest.mark.parametrize(
    "major", [each if each in SHORT else pytest.param(each, marks=pytest.mark.long) for each in servers.MAJORS]
)
def test_the_tests_run_on_the_named_version(major: int, tmp_path: Path) -> None:
    if major == 15 and not any(binaries.major_version(each) == 15 for each in binaries.system_folders()):
        skip_for_want_of("postgresql-15", "PostgreSQL 15")
    file = tmp_path / "test_asks.py"
    file.write_text(ASKS.format(major=major))

    done = run("--postgres", str(major), str(file), "--rootdir", str(tmp_path), "-n", "0")

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_version_that_is_nowhere_is_refused() -> None:
    done = run("--postgres", "14")

    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "PostgreSQL 14 is not on this machine: install the package postgresql-14.",
    )


def test_a_run_replaces_the_line_of_its_version_alone() -> None:
    line = servers.row("16.14", {"passed": [0] * 1200, "failed": [], "skipped": [0]})

    first, second = servers.with_row(TABLE, line).splitlines()

    assert first == TABLE.splitlines()[0]
    assert re.fullmatch(r"\| 16\.14 \| [\d.]+ \| \d{4}-\d\d-\d\d \| 1,200 passed, 1 skipped \|", second)


def test_the_page_has_a_line_for_each_version_that_the_command_knows() -> None:
    text = page("docs/deployment.md").text

    found = re.findall(r"^\| (\d+)\.\d+ \|", text, re.MULTILINE)

    assert tuple(map(int, found)) == servers.MAJORS


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = python("-m", "mqbroker.embedded.cli", "test", *words)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
