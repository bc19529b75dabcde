"""Measures the costs of a load on a broker, and several sides in turns: the machine's speed drifts for all alike."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from tools.bench import machine
from tools.bench.broker import Broker
from tools.bench.figures import Figures, ratio
from tools.bench.load import Measured
from tools.bench.report import Report

LIMIT = "limit"

Comparison = Callable[[Figures, Figures], None]


def measure(
    running: Broker,
    work: Callable[[], Measured],
    operations: int = 1,
    *,
    process: str = "web",
    servers: Sequence[str] = (),
) -> Figures:
    """Runs a load. Returns its rate and latencies, and per operation the CPU of one of the broker's processes, of
    PostgreSQL and of this process.

    `operations`: how many operations one latency stands for. `servers`: the URLs of all PostgreSQL servers, by default
    the broker's.
    """
    with contextlib.ExitStack() as stack:
        used = [stack.enter_context(machine.used(url)) for url in servers or [running.database_url]]
        cpu, own = running.cpu_seconds()[process], os.times()
        measured = work()
        cpu, now = running.cpu_seconds()[process] - cpu, os.times()
    if not measured.latencies:
        raise RuntimeError(f"no operation was answered as expected, {measured.refused} were refused")
    done = len(measured.latencies) * operations
    return Figures(
        per_second=done / measured.seconds,
        p50_ms=measured.percentile_ms(50),
        p99_ms=measured.percentile_ms(99),
        web_cpu_us=cpu * 1e6 / done,
        postgres_cpu_us=sum(each.cpu_seconds for each in used) * 1e6 / done,
        wal_bytes=sum(each.wal_bytes for each in used) / done,
        load_cpu_us=(now.user + now.system - own.user - own.system) * 1e6 / done,
        refused=measured.refused,
    )


def by_rate(figures: Figures, other: Figures) -> None:
    """Sets the ratios of two sides: of their rates, and of the CPU of web process and PostgreSQL."""
    figures.of_other = ratio(figures.per_second, other.per_second)
    figures.cpu_of_other = ratio(other.server_cpu_us, figures.server_cpu_us)


def by_latency(figures: Figures, other: Figures) -> None:
    """Sets the ratios of two sides whose rate is fixed: of the median latencies, and of the CPU."""
    by_rate(figures, other)
    figures.of_other = ratio(other.p50_ms, figures.p50_ms)


def rounds(report: Report, case: str, sides: Sequence[str]) -> Iterator[Sequence[str]]:
    """The sides of each round in the order in which they are measured: the first one differs from round to round."""
    for number in range(report.options.rounds):
        load = os.getloadavg()[0]
        report.progress(f"{case}, round {number + 1} of {report.options.rounds}, load {load:.1f}")
        yield sides if number % 2 else sides[::-1]


def in_turns(
    report: Report,
    case: str,
    sides: Mapping[str, Callable[[], Figures]],
    base: str | None = None,
    compare: Comparison = by_rate,
) -> None:
    """Measures each side once in each round. Prints a table of the medians, with the ratios within the rounds to the
    yardstick, if a side is named LIMIT, and to the side `base`.
    """
    for order in rounds(report, case, list(sides)):
        found = {side: sides[side]() for side in order}
        for side in sides:
            if LIMIT in sides and side != LIMIT:
                found[side].of_limit = ratio(found[side].per_second, found[LIMIT].per_second)
            if base is not None and base in sides and side not in (base, LIMIT):
                compare(found[side], found[base])
            report.measured(case, side, found[side])
    report.ended(case)
