"""Beat with a copy of its table that lacks one task and has short periods: `python -m tests.scheduling.beats`."""

import argparse
import sys

from mqbroker.celery import beat
from mqbroker.celery.app import app

PERIOD_SECONDS = 0.5


def main() -> None:
    """Sends the tasks that are left, until a signal."""
    parser = argparse.ArgumentParser("tests.scheduling.beats", description=__doc__)
    parser.add_argument("--without", metavar="TASKS", help="the tasks that this beat never sends, with commas between")
    given, others = parser.parse_known_args()
    table = app.conf.beat_schedule
    app.conf.beat_schedule = {
        name: {**entry, "schedule": PERIOD_SECONDS}
        for name, entry in table.items()
        if name not in given.without.split(",")
    }
    sys.argv[1:] = others
    beat.main()


if __name__ == "__main__":
    main()
