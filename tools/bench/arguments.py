"""The arguments of `./mq bench`: a module that needs no packages, for --help."""

import argparse
from pathlib import Path

from tools.bench.report import Options

NAMES = "limit, throughput, delivery, lateness, overload, wal; only by name: export, horizon"
EPILOG = "docs/performance.md says what they measure."


def parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    words = argparse.ArgumentParser("mq bench", description="Measures the broker on servers of its own.", epilog=EPILOG)
    words.add_argument("names", nargs="*", metavar="name", help=NAMES)
    words.add_argument("--case", action="append", default=[], help="run only the cases with this in their name")
    words.add_argument(
        "--beside",
        metavar="CHECKOUT",
        help="throughput, wal: run another broker (in cases of the client: another client) in turns with this one: of "
        "a commit, or of the checkout in a folder",
    )
    default = Options()
    words.add_argument(
        "--rounds", type=int, default=default.rounds, help="of cases that compare (default: %(default)s)"
    )
    words.add_argument(
        "--seconds", type=float, default=default.seconds, help="of each load in a round (default: %(default)s)"
    )
    words.add_argument(
        "--messages",
        type=int,
        help="delivery, lateness, export, horizon (case filling): how many are stored, in place of the case's number",
    )
    words.add_argument(
        "--minutes", type=int, default=default.minutes, help="horizon: of each queue (default: %(default)s)"
    )
    words.add_argument(
        "--processes",
        default=default.processes,
        help="throughput: web processes of this checkout; another one has 1 (default: %(default)s)",
    )
    words.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE too, after each case")
    return words
