"""Runs the product's code in a simulated loop, schedule after schedule, and prints the first failure of each scenario.

A seed is one schedule: its clock, its turns and its faults. The same seed gives the same run to the byte.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence

import django


def main(words: Sequence[str]) -> int:
    """Returns 1 where a scenario has failed."""
    django.setup()
    # Behind the setup: the product's modules read the settings.
    from tests.simulated.loop.exploring import Explored, explore, report
    from tests.simulated.loop.scenarios import SCENARIOS

    parser = argparse.ArgumentParser("mq simulate", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"scenarios (default: all): {', '.join(SCENARIOS)}")
    parser.add_argument("--seed", type=int, help="the first seed; each schedule has the next one (default: by chance)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each scenario (default: 60)")
    parser.add_argument("--runs", type=int, default=sys.maxsize, help="schedules of each scenario at most")
    given = parser.parse_args(words)
    if unknown := [name for name in given.names if name not in SCENARIOS]:
        parser.error(f"there is no scenario {unknown[0]}: there are {', '.join(SCENARIOS)}")
    seed = random.SystemRandom().randrange(1 << 40) if given.seed is None else given.seed
    failures: list[Explored] = []
    for name in given.names or SCENARIOS:
        explored = explore(SCENARIOS[name], seed, given.runs, over(given.seconds))
        rate = explored.runs / max(explored.seconds, 1e-9)
        print(
            f"{name}: {explored.runs:,} schedules from seed {seed}, {explored.distinct:,} distinct, "
            f"{explored.steps:,} steps, {explored.seconds:.1f} s of CPU, {rate:,.0f} a second",
            flush=True,
        )
        if explored.failure is not None:
            print(report(name, explored.failure), flush=True)
            failures.append(explored)
    return 1 if failures else 0


def over(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds are over, by the machine's clock."""
    # Within a run `time.monotonic` is the simulated clock, and this one is not.
    until = time.perf_counter() + seconds
    return lambda: time.perf_counter() > until


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
