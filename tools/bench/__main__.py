"""`./mq bench [name …]`: runs the named benchmarks, or all of them."""

import argparse
import json
import signal
import sys
from pathlib import Path

from tools.bench import (
    cells,
    checks,
    client,
    delivery,
    disturbed,
    export,
    fairness,
    lateness,
    limit,
    overload,
    rocketmq,
    split,
    throughput,
    wal,
)
from tools.bench.report import Options, Report

BENCHMARKS = {
    "limit": limit.main,
    "throughput": throughput.main,
    "checks": checks.main,
    "lateness": lateness.main,
    "delivery": delivery.main,
    "fairness": fairness.main,
    "client": client.main,
    "rocketmq": rocketmq.main,
    "overload": overload.main,
    "disturbed": disturbed.main,
    "wal": wal.main,
    "cells": cells.main,
    "split": split.main,
    "export": export.main,
}
# The first needs the extra `analytics`, which `./mq bench export` installs: 890 MB that the others do without. The
# second copies a server in each round.
BY_NAME_ONLY = {"export", "split"}


def parser() -> argparse.ArgumentParser:
    """The words of the command."""
    words = argparse.ArgumentParser("mq bench", description="Measures the broker on servers of its own.")
    words.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHMARKS))
    words.add_argument(
        "--beside",
        type=Path,
        metavar="CHECKOUT",
        help="throughput, client, wal: run another checkout's broker or client in turns with this one",
    )
    words.add_argument(
        "--case",
        action="append",
        default=[],
        help="throughput, cells: only the cases with this in their name; export: only readers, increment or senders; "
        "split: small or large",
    )
    words.add_argument(
        "--rounds",
        type=int,
        default=Options.rounds,
        help="of limit, throughput, client, cells, split and export's senders (default: %(default)s)",
    )
    words.add_argument(
        "--seconds",
        type=float,
        default=Options.seconds,
        help="of each of these rounds, and of wal (default: %(default)s)",
    )
    words.add_argument(
        "--exported", type=int, default=Options.exported, help="export: messages in the broker (default: %(default)s)"
    )
    words.add_argument(
        "--processes",
        default=Options.processes,
        help="throughput: web processes of this checkout; another one has 1 (default: %(default)s)",
    )
    words.add_argument("--json", type=Path, metavar="FILE", help="write all figures there too")
    return words


def unknown_cases(names: list[str], words: list[str]) -> list[str]:
    """The cases that there are, where none of them is chosen."""
    if "export" in names:
        return [] if export.chosen(words) else [*export.PARTS]
    if "split" in names:
        return [] if not words or set(words) <= set(split.SIZES) else [*split.SIZES]
    if "cells" in names:
        return [] if cells.chosen(words) else [*cells.PARTS]
    return [] if throughput.chosen(words) else [case.name for case in throughput.CASES]


def main(words: list[str]) -> int:
    """Runs them one after another."""
    # What is measured is ended, and its folders are removed, as at any other end.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    given = parser().parse_args(words)
    if unknown := set(given.names) - set(BENCHMARKS):
        parser().error(f"There is no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}.")
    beside = given.beside.resolve() if given.beside else None
    if known := unknown_cases(given.names, given.case):
        parser().error(f"No case has {' or '.join(given.case)} in its name: there are {'; '.join(known)}.")
    options = Options(beside, given.rounds, given.seconds, tuple(given.case), given.exported, given.processes)
    reports = []
    for name in given.names or (
        [name for name in BENCHMARKS if name not in BY_NAME_ONLY] if beside is None else ["throughput"]
    ):
        print(f"== {name}", flush=True)
        report = Report(name, options)
        BENCHMARKS[name](report)
        report.keep()
        reports.append(report)
    if given.json:
        given.json.write_text(json.dumps([report.content() for report in reports], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
