"""`./mq bench [name …]`: runs the named benchmarks, or all; docs/performance.md says what they measure."""

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence

import psycopg

from tools.bench import checkout, delivery, export, horizon, lateness, limit, overload, throughput, wal
from tools.bench.arguments import parser
from tools.bench.checkout import NoCheckout
from tools.bench.machine import require_durability
from tools.bench.report import Cases, Keeping, Options, Report

BENCHMARKS: Mapping[str, Cases] = {
    "limit": limit.CASES,
    "throughput": throughput.CASES,
    "delivery": delivery.CASES,
    "lateness": lateness.CASES,
    "overload": overload.CASES,
    "wal": wal.CASES,
    "export": export.CASES,
    "horizon": horizon.CASES,
}
# `export` needs the extra `analytics`, which `./mq bench export` installs: 890 MB that other benchmarks do not need.
# `horizon` takes an hour.
BY_NAME_ONLY = {"export", "horizon"}


def chosen(names: Sequence[str], words: Sequence[str]) -> dict[str, list[str]]:
    """The cases of these benchmarks whose names contain one of the words; without words all cases."""
    cases = {name: [case for case in BENCHMARKS[name] if _has(case, words)] for name in names}
    return {name: found for name, found in cases.items() if found}


def _has(case: str, words: Sequence[str]) -> bool:
    return not words or any(word in case for word in words)


def main(words: list[str]) -> int:
    """Runs benchmarks one after another."""
    # A signal ends the benchmark in order: the measured processes are ended, and their folders are removed.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    given = parser().parse_args(words)
    if unknown := set(given.names) - set(BENCHMARKS):
        parser().error(f"There is no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}.")
    all_of_them = [name for name in BENCHMARKS if name not in BY_NAME_ONLY]
    names = given.names or (["throughput"] if given.beside else all_of_them)
    cases = chosen(names, given.case)
    if not cases:
        known = "; ".join(case for name in names for case in BENCHMARKS[name])
        parser().error(f"No case has {' or '.join(given.case)} in its name: there are {known}.")
    if given.json and not given.json.parent.is_dir():
        parser().error(f"--json: there is no folder {given.json.parent}: make it first.")
    with contextlib.ExitStack() as stack:
        try:
            beside = stack.enter_context(checkout.named(given.beside)) if given.beside else None
        except NoCheckout as problem:
            parser().error(f"--beside: {problem}")
        options = Options(beside, given.rounds, given.seconds, given.processes, given.minutes, given.messages)
        run(cases, Keeping(options, given.json))
    return 0


def run(cases: Mapping[str, Sequence[str]], keeping: Keeping) -> None:
    """Runs cases of benchmarks."""
    for name, chosen_ones in cases.items():
        print(f"== {name}", flush=True)
        report = keeping.report(name)
        tell_conditions(report)
        for case in chosen_ones:
            BENCHMARKS[name][case](report)
        report.keep()


def tell_conditions(report: Report) -> None:
    """Prints the conditions of the measurements. Refuses a server whose commits are not durable."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        for name, value in require_durability(connection).items():
            report.fact(name, value)
    report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for side, each in report.options.sides().items():
        report.fact(side, each.name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
