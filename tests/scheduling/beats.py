"""Beat with some tasks of its table, which have short periods here: `python -m tests.scheduling.beats`."""

import argparse
import sys

from mqbroker.celery import beat
from mqbroker.celery.app import app

PERIOD_SECONDS = 0.5


def main() -> None:
    """Sends the tasks of these names, until a signal."""
    parser = argparse.ArgumentParser("tests.scheduling.beats", description=__doc__)
    parser.add_argument("--tasks", required=True, help="the tasks that this beat sends, with commas between")
    given, others = parser.parse_known_args()
    table = app.conf.beat_schedule
    app.conf.beat_schedule = {
        name: {**entry, "schedule": PERIOD_SECONDS} for name, entry in table.items() if name in given.tasks.split(",")
    }
    sys.argv[1:] = others
    beat.main()


if __name__ == "__main__":
    main()
