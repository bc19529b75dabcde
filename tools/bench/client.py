"""The client: whole transactions by threads of one process, with and without coalescing.

`--beside` adds the client of another checkout, at the same broker.
"""

import subprocess
from functools import partial
from pathlib import Path

import msgspec

from mqbroker.embedded import commands
from tools.bench import broker
from tools.bench.broker import KEY, Broker
from tools.bench.checkout import OTHER, OURS
from tools.bench.figures import Figures, ratio
from tools.bench.load import Measured
from tools.bench.report import Cases, Report
from tools.bench.turns import by_rate, in_turns, measure

THREADS = {"client, one thread": 1, "client, 32 threads": 32}
ONE_BY_ONE = {"coalescing": False}


def main(case: str, threads: int, report: Report) -> None:
    """Prints rates, latencies, and the CPU of the client and of the broker."""
    with broker.running(worker=False) as running:
        beside, one = report.options.beside, partial(_measured, running, threads, report.options.seconds)
        sides = {"one by one": partial(one, OURS, ONE_BY_ONE), "coalesced": partial(one, OURS, {})}
        if beside is not None:
            sides[OTHER] = partial(one, beside, {})
        one(OURS, {})  # warms up the broker, which creates the topic
        in_turns(report, case, sides, OTHER if beside else "one by one", _by_client)


def _by_client(figures: Figures, other: Figures) -> None:
    by_rate(figures, other)
    figures.cpu_of_other = ratio(other.load_cpu_us, figures.load_cpu_us)


def _measured(running: Broker, threads: int, seconds: float, root: Path, options: dict[str, bool]) -> Figures:
    words = (running.url, KEY, str(threads), str(seconds), msgspec.json.encode(options).decode())
    command = commands.python("-m", "tools.bench.programs.callers", *words)
    environment, cpu_us = running.environment | {"PYTHONPATH": str(root / "client")}, 0.0

    def call() -> Measured:
        nonlocal cpu_us
        printed = subprocess.run(command, env=environment, cwd=commands.ROOT, stdout=subprocess.PIPE, check=True).stdout
        latencies, took, cpu_us = msgspec.json.decode(printed, type=tuple[list[float], float, float])
        return Measured(took, latencies)

    figures = measure(running, call)
    figures.load_cpu_us = cpu_us
    return figures


CASES: Cases = {case: partial(main, case, threads) for case, threads in THREADS.items()}
