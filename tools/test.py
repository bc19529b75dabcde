"""Runs the tests on a new PostgreSQL and a new Valkey, which are removed afterwards."""

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mqbroker.embedded import commands
from mqbroker.embedded.cli import foreground, options, private
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.servers import plain, sized
from tools import machine

MIN_CORES = 2
# Gives each of pytest's processes its own servers from a list, and whole test files.
PLUGIN = "tests.spread"
PROFILER = "tests.profiling"
# Finds the binaries of a version of PostgreSQL, and writes the result of all these suites into the page.
VERSIONS = "tests.servers"
SUITES = ("tests/store", "tests/transactions", "tests/scheduling", "tests/delivery", "tests/outboxes")
OWN = ("DATABASE_URL", "REDIS_URL", "MQBROKER_DATA_DIR")


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        parser().print_help()
        return 0
    given, left = parser().parse_known_args(words)
    number = processes(given, left)
    if given.postgres:
        found = subprocess.run(commands.python("-m", VERSIONS, given.postgres), stdout=subprocess.PIPE, text=True)
        if found.returncode:
            return 1
        os.environ[plain.VARIABLE] = found.stdout.strip()
        given.notes, left = not (left or given.marks), left or [*SUITES]
    count = max(number, 1)
    # A copy of a database, which nearly every broker of the tests runs on, takes 0.3 s on a disk and 0.05 s in memory.
    with scratch() as folder, private.several(count, private.memory(count), sized.OfTests) as environments:
        marks = ["-m", given.marks] if given.marks else []
        environment = shared(environments, number) | chosen(given) | {"PYTEST_PLUGINS": plugins(given, number)}
        environment["TMPDIR"] = str(folder)
        pytest = commands.python("-m", "pytest", *marks, *left)
        return foreground.run(commands.python("-m", "tools.reaper", *pytest), environment)


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """The folder of all temporary files of a run. Files that a killed process has left there are removed with it."""
    with tempfile.TemporaryDirectory(prefix="mqtest-", ignore_cleanup_errors=True) as folder:
        # PostgreSQL may run as another user, which has to enter this folder and to write there.
        Path(folder).chmod(0o1777)
        yield Path(folder)


def parser() -> argparse.ArgumentParser:
    pytest = "Other options are pytest's: .venv/bin/python -m pytest --help prints them once ./mq test has run."
    usage = "mq test [file or folder ...] [options, pytest's too]"
    made = argparse.ArgumentParser("mq test", usage, __doc__, pytest, allow_abbrev=False)
    made.add_argument("--all", action="store_true", help="add the tests that only vary a promise, which take minutes")
    made.add_argument("--twice", action="store_true", help="run the unsteady tests ten times more")
    made.add_argument("--postgres", metavar="MAJOR", help="run on this version; alone, note the result")
    made.add_argument("--profile", metavar="FILE", type=Path, help="write where the time goes, by file and by fixture")
    made.add_argument("-n", "--numprocesses", type=int, metavar="N", help="N processes; 0: pytest's own process alone")
    made.add_argument("-m", dest="marks", default="", metavar="MARKS", help="pytest's selection by marks")
    made.set_defaults(notes=False)
    return made


def processes(given: argparse.Namespace, left: list[str]) -> int:
    """The number of pytest's processes, each with its own servers; 0: only the process that was started.

    All tests, or a selection by mark or name, run in as many processes as the machine can run. A file or folder runs in
    one process. `-n 3` and `-n 0` choose another number.
    """
    if given.numprocesses is not None:
        return max(int(given.numprocesses), 0)
    names_a_path = any((ROOT / word.partition("::")[0]).exists() for word in left if not word.startswith("-"))
    is_debugged = {"-s", "--pdb", "--trace"} & set(left)
    cores = len(os.sched_getaffinity(0))
    return 0 if names_a_path or is_debugged or cores < MIN_CORES else machine.processes(cores)


def chosen(given: argparse.Namespace) -> dict[str, str]:
    """The environment variables that pass the options to pytest's processes."""
    found = {"MQ_LOOP_SECONDS": str(min(machine.calibrate() for _ in range(machine.ROUNDS)))}
    if given.all:
        found["MQ_LONG"] = "1"
    if given.twice:
        found["MQ_TWICE"] = "1"
    if given.profile:
        found["MQ_PROFILE_OF_TESTS"] = str(Path(os.environ.get("MQ_CALLED_FROM", "."), given.profile).resolve())
    return found


def plugins(given: argparse.Namespace, number: int) -> str:
    ours = [*([PROFILER] if given.profile else []), *([PLUGIN] if number else []), *([VERSIONS] if given.notes else [])]
    return ",".join(filter(None, (os.environ.get("PYTEST_PLUGINS"), *ours)))


def shared(environments: list[dict[str, str]], number: int) -> dict[str, str]:
    """The environment of pytest: the first of these environments, with the servers of all of them for its processes."""
    if not number:
        return environments[0]
    servers = json.dumps([{name: each[name] for name in OWN} for each in environments])
    return environments[0] | {"MQ_SERVERS_OF_TESTS": servers}
