"""The client: whole transactions by threads of one process, with and without coalescing, in turns.

`--beside` adds the client of another checkout, at the same broker and at its own.
"""

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mqbroker.embedded import commands
from tools.bench import broker
from tools.bench.broker import KEY, Broker
from tools.bench.checkout import OURS, Checkout
from tools.bench.figures import Figures, ratio
from tools.bench.report import Report

CALLERS = (1, 32)


@dataclass(frozen=True)
class Side:
    """A measured client: its checkout, and the options of its `Broker`."""

    name: str
    root: Path
    options: str
    #: Whether client and broker are of the same checkout.
    has_own_broker: bool = False


COALESCED = Side("coalesced", OURS, "{}")
ONE_BY_ONE = Side("one by one", OURS, '{"coalescing": false}')
Brokers = dict[Path, Broker]


def main(report: Report) -> None:
    """Prints rates, latencies and CPU of the process, and our rate and CPU as ratios to the other client in the same
    round.
    """
    report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    beside = report.options.beside
    sides = [ONE_BY_ONE, COALESCED]
    if beside is not None:
        name = Checkout(beside).name
        sides[:0] = [Side(name, beside, "{}"), Side(f"{name}, its broker", beside, "{}", has_own_broker=True)]
    with contextlib.ExitStack() as stack:
        roots = {side.root for side in sides if side.has_own_broker}
        brokers = {root: stack.enter_context(broker.running(worker=False, checkout=Checkout(root))) for root in roots}
        brokers[OURS] = stack.enter_context(broker.running(worker=False))
        for callers in CALLERS:
            for number in range(report.options.rounds):
                # The order of the sides changes from round to round, because the machine's speed drifts.
                _round(report, brokers, callers, sides if number % 2 else sides[::-1])
            report.ended(_name(callers))


def _round(report: Report, brokers: Brokers, callers: int, sides: list[Side]) -> None:
    name = _name(callers)
    report.progress(name)
    found = {
        side: _measured(brokers[side.root if side.has_own_broker else OURS], callers, report.options.seconds, side)
        for side in sides
    }
    ours = found[COALESCED]
    for side, figures in found.items():
        if side != COALESCED:
            figures.of_other = ratio(ours.per_second, figures.per_second)
            figures.cpu_of_other = ratio(figures.load_cpu_us, ours.load_cpu_us)
        report.measured(name, side.name, figures)


def _name(callers: int) -> str:
    return f"transactions, {callers} caller{'s' if callers > 1 else ''}"


def _measured(running: Broker, callers: int, seconds: float, side: Side) -> Figures:
    words = (running.url, KEY, str(callers), str(seconds), side.options)
    done = subprocess.run(
        commands.python("-m", "tools.bench.programs.callers", *words),
        env=running.environment | {"PYTHONPATH": str(side.root / "client")},
        cwd=commands.ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return Figures(**json.loads(done.stdout))
