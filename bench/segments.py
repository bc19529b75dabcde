"""The cost of segments: the time for which a roll stops the writers, and that of a send by the number of segments."""

import subprocess

import msgspec

from bench import broker
from bench.report import Report
from embedded import commands


def main(report: Report) -> None:
    """Prints milliseconds of a roll and of 10,000 positions carried over, and PostgreSQL's CPU per send."""
    with broker.running(worker=False) as running:
        done = subprocess.run(
            commands.python("-m", "bench.programs.segments"),
            env=running.environment,
            cwd=commands.ROOT,
            stdout=subprocess.PIPE,
            check=True,
        )
    figures = msgspec.json.decode(done.stdout, type=dict[str, float])
    report.line("a roll", {name: figures[name] for name in figures if name.endswith("_ms")})
    report.line("a send", {name: figures[name] for name in figures if not name.endswith("_ms")})
