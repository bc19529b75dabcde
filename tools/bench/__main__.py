"""`./mq bench [name …]`: runs the named benchmarks, or all."""

import argparse
import contextlib
import signal
import sys
from pathlib import Path

from tools.bench import (
    cells,
    checkout,
    checks,
    client,
    delivery,
    disturbed,
    export,
    fairness,
    horizon,
    lateness,
    limit,
    overload,
    rocketmq,
    split,
    throughput,
    wal,
)
from tools.bench.checkout import NoCheckout
from tools.bench.report import Keeping, Options

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
    "horizon": horizon.main,
}
# `export` needs the extra `analytics`, which `./mq bench export` installs: 890 MB that other benchmarks do not need.
# `split` copies a server in each round. `horizon` takes an hour.
BY_NAME_ONLY = {"export", "split", "horizon"}


def parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    words = argparse.ArgumentParser("mq bench", description="Measures the broker on servers of its own.")
    words.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHMARKS))
    words.add_argument(
        "--beside",
        metavar="CHECKOUT",
        help="throughput, client, wal: run another broker or client in turns with this one: of a commit, or of the "
        "checkout in a folder",
    )
    words.add_argument(
        "--case",
        action="append",
        default=[],
        help="throughput, cells: only the cases with this in their name; export: only readers, increment or senders; "
        "split: small or large; horizon: queues",
    )
    words.add_argument(
        "--rounds",
        type=int,
        default=Options.rounds,
        help="number of rounds of limit, throughput, client, cells, split and export's senders (default: %(default)s)",
    )
    words.add_argument(
        "--seconds",
        type=float,
        default=Options.seconds,
        help="of each of these rounds, and of wal (default: %(default)s)",
    )
    _add_sizes(words)
    words.add_argument(
        "--processes",
        default=Options.processes,
        help="throughput: web processes of this checkout; another one has 1 (default: %(default)s)",
    )
    words.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE too, after each case")
    return words


def _add_sizes(words: argparse.ArgumentParser) -> None:
    words.add_argument(
        "--exported", type=int, default=Options.exported, help="export: messages in the broker (default: %(default)s)"
    )
    words.add_argument(
        "--minutes", type=int, default=Options.minutes, help="horizon: of each queue (default: %(default)s)"
    )
    words.add_argument(
        "--messages",
        type=int,
        default=Options.messages,
        help="horizon: store this many messages instead, and compare the last minute with the first",
    )


def unknown_cases(names: list[str], words: list[str]) -> list[str]:
    """The names of all cases, if the given words select none; else empty."""
    if "export" in names:
        return [] if export.chosen(words) else [*export.PARTS]
    if "split" in names:
        return [] if not words or set(words) <= set(split.SIZES) else [*split.SIZES]
    if "horizon" in names:
        return [] if horizon.chosen(tuple(words)) else [side.name for side in horizon.SIDES]
    if "cells" in names:
        return [] if cells.chosen(words) else [*cells.PARTS]
    return [] if throughput.chosen(words) else [case.name for case in throughput.CASES]


def main(words: list[str]) -> int:
    """Runs benchmarks one after another."""
    # A signal ends the benchmark in order: the measured processes are ended, and their folders are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    given = parser().parse_args(words)
    if unknown := set(given.names) - set(BENCHMARKS):
        parser().error(f"There is no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}.")
    if known := unknown_cases(given.names, given.case):
        parser().error(f"No case has {' or '.join(given.case)} in its name: there are {'; '.join(known)}.")
    if given.json and not given.json.parent.is_dir():
        parser().error(f"--json: there is no folder {given.json.parent}: make it first.")
    with contextlib.ExitStack() as stack:
        try:
            beside = stack.enter_context(checkout.named(given.beside)) if given.beside else None
        except NoCheckout as problem:
            parser().error(f"--beside: {problem}")
        options = Options(
            beside,
            given.rounds,
            given.seconds,
            tuple(given.case),
            given.exported,
            given.processes,
            given.minutes,
            given.messages,
        )
        run(given.names, Keeping(options, given.json))
    return 0


def run(names: list[str], keeping: Keeping) -> None:
    """Runs the named benchmarks, or all benchmarks that the options do not leave out."""
    left = [name for name in BENCHMARKS if name not in BY_NAME_ONLY]
    for name in names or (left if keeping.options.beside is None else ["throughput"]):
        print(f"== {name}", flush=True)
        report = keeping.report(name)
        BENCHMARKS[name](report)
        report.keep()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
