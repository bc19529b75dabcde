"""Runs the tests on a PostgreSQL and a Valkey of their own, which are removed afterwards."""

import argparse
import json
import os

from embedded import commands
from embedded.cli import classes, foreground, options, private
from embedded.commands import ROOT

# Tests wait half of their time for processes that they start: five keep two cores busy for 92 % of the time. Spark has
# threads for each core.
PROCESSES = 5
# For 66 % of the time in four processes, for 87 % in six and for 91 % in seven.
PROCESSES_WITHOUT_SPARK = 7
MIN_CORES = 2
# Gives each of pytest's processes servers of its own from a list, and whole files.
PLUGIN = "tests.spread"
OWN = ("DATABASE_URL", "REDIS_URL", "MQBROKER_DATA_DIR")


def main(words: list[str]) -> int:
    if options.asks_for_help(words):
        pytest = "Options are pytest's: .venv/bin/python -m pytest --help prints them once ./mq test has run."
        argparse.ArgumentParser(
            "mq test", usage="mq test [file or folder ...] [pytest's options]", description=__doc__, epilog=pytest
        ).print_help()
        return 0
    number = processes(words)
    if number != PROCESSES_WITHOUT_SPARK:
        classes.keep_once()
    count = max(number, 1)
    # A copy of a database, which nearly every broker of the tests runs on, takes 0.3 s on a disk and 0.05 s in memory.
    with private.several(count, private.memory(count)) as environments:
        return foreground.run(commands.python("-m", "pytest", *others(words)), shared(environments, number))


def processes(words: list[str]) -> int:
    """In how many processes pytest runs, each with servers of its own; 0: in the one that was started.

    All tests, or a selection of them by mark or name, run in PROCESSES; where `-m` leaves Spark out, in
    PROCESSES_WITHOUT_SPARK. A file or folder runs in one. `-n 3` and `-n 0` say otherwise.
    """
    parser = numbers()
    parser.add_argument("-m", dest="marks", default="")
    given, left = parser.parse_known_args(words)
    if given.numprocesses is not None:
        return max(int(given.numprocesses), 0)
    names_a_path = any((ROOT / word.partition("::")[0]).exists() for word in left if not word.startswith("-"))
    is_debugged = {"-s", "--pdb", "--trace"} & set(left)
    if names_a_path or is_debugged or len(os.sched_getaffinity(0)) < MIN_CORES:
        return 0
    return PROCESSES_WITHOUT_SPARK if "not spark" in given.marks else PROCESSES


def others(words: list[str]) -> list[str]:
    """pytest's own options."""
    return numbers().parse_known_args(words)[1]


def numbers() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("mq test", add_help=False, allow_abbrev=False)
    parser.add_argument("-n", "--numprocesses", type=int)
    return parser


def shared(environments: list[dict[str, str]], number: int) -> dict[str, str]:
    """The environment of pytest: the first of these, and for its processes the servers of all of them."""
    if not number:
        return environments[0]
    servers = json.dumps([{name: each[name] for name in OWN} for each in environments])
    plugins = ",".join(filter(None, (os.environ.get("PYTEST_PLUGINS"), PLUGIN)))
    return environments[0] | {"MQ_SERVERS_OF_TESTS": servers, "PYTEST_PLUGINS": plugins}
