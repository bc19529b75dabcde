"""Beat: `python -m mqbroker.celery.beat --schedule PATH` sends each task when it is due, until a signal.

Tasks are sent by their names. Celery's own command line, `celery beat`, imports their modules, Django's apps and a
shell first, and takes twice the processor time to start.
"""

import argparse

from celery.apps.beat import Beat

from mqbroker.celery.app import app


class BeatByName(Beat):
    """Celery's beat without the modules of the tasks."""

    def init_loader(self) -> None:
        """Completes the app."""
        app.finalize()


def main() -> None:
    """Sends tasks until a signal."""
    parser = argparse.ArgumentParser("mqbroker.celery.beat", description=__doc__)
    parser.add_argument("--schedule", required=True, metavar="PATH", help="keeps when each task was sent last")
    BeatByName(app=app, schedule=parser.parse_args().schedule, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
