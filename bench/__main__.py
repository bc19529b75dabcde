"""`./mq bench [name …]`: runs the named benchmarks, or all of them."""

import sys

from bench import checks, delivery, lagging, lateness, longpolls, segments, throughput, timers
from bench.report import Report

BENCHMARKS = {
    "throughput": throughput.main,
    "checks": checks.main,
    "lateness": lateness.main,
    "timers": timers.main,
    "delivery": delivery.main,
    "longpolls": longpolls.main,
    "lagging": lagging.main,
    "segments": segments.main,
}


def main(names: list[str]) -> int:
    """Runs them one after another; 2 for a name that is none."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(
            f"There is no benchmark {', '.join(sorted(unknown))}: there are {', '.join(BENCHMARKS)}.", file=sys.stderr
        )
        return 2
    for name in names or BENCHMARKS:
        print(f"== {name}", flush=True)
        report = Report(name)
        BENCHMARKS[name](report)
        report.keep()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
