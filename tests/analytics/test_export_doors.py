"""Each option of the export, its reports and the lake through each door: `./mq`, `manage.py`, and `submit.py`."""

import os
import re
import sys
from itertools import product
from pathlib import Path

import pytest
from django.core.management.base import CommandParser

from analytics.management.commands import export, lake, report
from tests.analytics.conftest import ROOT
from tests.broker import forks

DOORS = {
    "mq": ["-m", "mqbroker.embedded.cli"],
    "manage.py": ["manage.py"],
    "submit.py": ["analytics/submit.py"],
}
# All but the folder of ./mq, and the help.
COMMON = {"--master": "local[1]", "--conf": "spark.x=1", "--cores": "1", "--nice": "0"}
COMMANDS = {
    "export": (
        export.Command(),
        {"--to": "DIR", "--format": "delta", "--compact": "", "--reader": "jdbc", "--progress": "", **COMMON},
    ),
    "verify": (export.Command(), {"--verify": "DIR", **COMMON}),
    "report": (report.Command(), {"--to": "DIR-2", "--html": "FILE", "--console": "", **COMMON}),
    "lake": (lake.Command(), {"--to": "DIR", "--every": "60", "--once": "", "--compact": ""}),
}
# The code of the refusal that a command which has understood its words meets.
CODES = {"export": "export_failed", "verify": "folder_refused", "report": "folder_refused", "lake": "folder_refused"}
PAGE = Path(ROOT, "docs/analytics.md").read_text(encoding="utf-8")
# Options of other programs that the page names.
OTHERS = {"--jars", "--py-files"}


def options(name: str) -> set[str]:
    """The options of a command."""
    parser = CommandParser()
    COMMANDS[name][0].add_arguments(parser)
    return {option for action in parser._actions for option in action.option_strings} - {"-h", "--help"}


def test_the_page_names_no_option_that_is_not_typed_here_and_the_commands_have_no_other() -> None:
    typed = {name: set(words) for name, (_, words) in COMMANDS.items()}

    assert typed["export"] | typed["verify"] == options("export")
    assert typed["report"] == options("report")
    assert typed["lake"] | {"--verify"} == options("lake")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE))
    assert named - OTHERS <= set().union(*typed.values())


@pytest.mark.parametrize(("name", "door"), [each for each in product(COMMANDS, DOORS) if each != ("lake", "submit.py")])
def test_each_option_is_taken_by_each_door(name: str, door: str, tmp_path: Path) -> None:
    words = ["report", str(tmp_path / "DIR")] if name == "report" else ["lake" if name == "lake" else "export"]
    for option, value in COMMANDS[name][1].items():
        words += [option, str(tmp_path / value) if value.isupper() or value == "DIR-2" else value][: 1 + bool(value)]
    environ = {
        **os.environ,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
        "MQBROKER_DATA_DIR": str(tmp_path),
    }

    done = forks.run([sys.executable, *DOORS[door], *words], environ)

    # Only a command that has understood its words looks for the export, or for the database.
    assert (done.returncode, done.stdout) == (1, "")
    assert f"({CODES[name]})" in done.stderr


@pytest.mark.parametrize("name", ["export", "report"])
def test_mq_refuses_what_the_command_would_refuse_before_it_starts_a_database(name: str, tmp_path: Path) -> None:
    words = [*DOORS["mq"], name, "--data-dir", str(tmp_path / "data"), "--cores", "none"]

    done = forks.run([sys.executable, *words], os.environ)

    assert done.returncode == 2
    assert "none is no number of tasks: give a whole number from 1 on." in done.stderr
    assert done.stderr.startswith(f"usage: mq {name} ")
    assert not (tmp_path / "data").exists()


def test_a_path_is_relative_to_the_folder_in_which_mq_was_called(tmp_path: Path) -> None:
    environ = {**os.environ, "MQ_CALLED_FROM": str(tmp_path), "MQBROKER_DATA_DIR": str(tmp_path / "data")}

    done = forks.run([sys.executable, *DOORS["mq"], "report", "none", "--nice", "0"], environ)

    assert f"{tmp_path / 'none'} " in done.stderr
