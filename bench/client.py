"""The client: whole transactions by threads of one process, with coalescing and without it, in turns."""

import json
import os
import subprocess

from bench import broker
from bench.broker import KEY, Broker
from bench.figures import Figures
from bench.report import Report
from embedded import commands

CALLERS = (1, 32)
COALESCED, ONE_BY_ONE = "coalesced", "one by one"


def main(report: Report) -> None:
    """Prints a table: rates, latencies and the CPU of the process, and within each round the ratio of the two ways."""
    report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with broker.running(worker=False) as running:
        for callers in CALLERS:
            _rounds(report, running, callers)
    report.table()


def _rounds(report: Report, running: Broker, callers: int) -> None:
    name = f"transactions, {callers} caller{'s' if callers > 1 else ''}"
    report.progress(name)
    options = report.options
    done = subprocess.run(
        commands.python(
            "-m", "bench.programs.callers", running.url, KEY, str(callers), str(options.seconds), str(options.rounds)
        ),
        env=running.environment | {"PYTHONPATH": "client"},
        cwd=commands.ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    for line in done.stdout.splitlines():
        found = {side: Figures(**figures) for side, figures in json.loads(line).items()}
        found[COALESCED].of_other = _ratio(found[COALESCED].per_second, found[ONE_BY_ONE].per_second)
        for side, figures in found.items():
            report.measured(name, side, figures)


def _ratio(ours: float | None, other: float | None) -> float | None:
    return ours / other if ours and other else None
