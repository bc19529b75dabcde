"""`./mq settings` prints an env file: what it shows can be given back to it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT, python
from mqbroker.environment import env
from tests.broker import forks

# One that is not the default, for each kind of setting, with what a shell might take amiss.
OTHERS = {
    "MQBROKER_TRANSACTION_CHECK_MAX": "3",
    "MQBROKER_REJECT_TRANSACTION_MESSAGE": "True",
    "MQBROKER_DELAY_LEVELS": "0s 1s 90s 60m 48h",
    "MQBROKER_ALLOWED_HOSTS": "a.example, b.example",
    "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "10.0.0.0/8,::1/128",
    "MQBROKER_JDBC_JAR": "/a folder/it's $HOME.jar",
    "MQBROKER_LOG": "json",
}


def settings(**variables: str) -> str:
    """What the command prints beside these variables only."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("MQBROKER_")}
    done = forks.run(python("-m", "mqbroker.embedded.cli", "settings"), theirs | variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def given_to_a_shell(printed: str) -> dict[str, str]:
    """The variables that a shell makes of it."""
    done = subprocess.run(
        ["env", "-i", "/bin/sh", "-c", 'set -a; eval "$1"; env -0', "sh", printed],
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = (pair.partition("=") for pair in done.stdout.split("\0"))
    return {name: value for name, _, value in pairs if name.startswith("MQBROKER_")}


@pytest.mark.parametrize("variables", [{}, OTHERS], ids=["defaults", "others"])
def test_what_is_printed_is_accepted_as_input(variables: Mapping[str, str]) -> None:
    printed = settings(**variables)

    read = given_to_a_shell(printed)

    assert set(read) == {setting.name for setting in env.declared}
    assert settings(**read) == printed


def test_delay_levels_are_printed_as_rocketmq_writes_them() -> None:
    assert "\nMQBROKER_DELAY_LEVELS='0d 1s 90s 1h 2d'\n" in settings(**OTHERS)


def test_a_secret_is_not_printed_and_nothing_is_in_its_place() -> None:
    printed = settings(MQBROKER_API_KEY="mq_kept_secret")

    assert "mq_kept_secret" not in printed
    assert "# MQBROKER_API_KEY is set, and its value is kept secret.\n" in printed
    assert "MQBROKER_API_KEY" not in given_to_a_shell(printed)


@pytest.mark.parametrize(
    "words",
    [
        ["-m", "mqbroker.embedded.cli", "settings"],
        ["-m", "mqbroker.embedded.cli", "--help"],
        ["-m", "mqbroker.embedded.cli", "test", "--help"],
        ["manage.py", "help", "migrate"],
        ["manage.py", "help"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_a_command_quietly(words: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(python(*words), cwd=ROOT, stdout=closed, stderr=subprocess.PIPE, text=True)

    # What fits into a buffer may be written at the very end only, where argparse has ended the program already.
    assert done.returncode in (0, 141)
    assert done.stderr == ""


def test_manage_works_on_the_folder_that_it_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    words = ["manage", "--data-dir", str(folder), "shell", "--no-imports", "-c"]
    ask = "from django.db import connection as c; print(c.cursor().execute('SHOW data_directory').fetchone()[0])"
    theirs = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "MQBROKER_DATA_DIR")}

    done = forks.run(python("-m", "mqbroker.embedded.cli", *words, ask), theirs)

    assert (done.returncode, done.stdout) == (0, f"{folder}/postgres\n"), done.stderr


def test_help_of_manage_makes_no_folder(tmp_path: Path) -> None:
    words = ["manage", "--help", "--data-dir", str(tmp_path / "data")]

    done = forks.run(python("-m", "mqbroker.embedded.cli", *words), os.environ)

    assert done.returncode == 0
    assert "--data-dir FOLDER" in done.stdout
    assert not (tmp_path / "data").exists()
