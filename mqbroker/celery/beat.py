"""Beat: `python -m mqbroker.celery.beat --schedule PATH` sends each task when it is due, until a signal.

Tasks are sent by their names. Celery's own command line, `celery beat`, imports their modules, Django's apps and a
shell first, and takes twice the processor time to start.
"""

import argparse
import signal
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from celery.apps.beat import Beat
from celery.beat import PersistentScheduler, Service

from mqbroker.celery import beating
from mqbroker.celery.app import app


class PatientScheduler(PersistentScheduler):
    """Celery's, which sleeps until a task is due: its own wakes up 10 ms before and asks for the time until then, which
    is more than half of what beat does.
    """

    def tick(self, *given: Any, **named: Any) -> float:
        """As Celery's; and notes that beat goes round, for `mqbroker.alive`."""
        beating.touched(Path(self.schedule_filename)).touch()  # type: ignore[attr-defined] # the stubs know none
        return float(super().tick(*given, **named))

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """How long to sleep where a task is due in `n` seconds."""
        return float(super().adjust(n, drift))  # type: ignore[arg-type] # seconds are no whole number


class BeatByName(Beat):
    """Celery's beat without the modules of the tasks."""

    def init_loader(self) -> None:
        """Completes the app."""
        app.finalize()

    def install_sync_handler(self, service: Service) -> None:
        """Has a signal end the service, which then writes its schedule.

        Celery's own handler writes and closes it first, also under a task that is being sent: beat then goes on, and
        ends by what fails next.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)


def end(number: int, _: FrameType | None) -> NoReturn:
    """The handler of a signal."""
    raise SystemExit


def main() -> None:
    """Sends tasks until a signal."""
    parser = argparse.ArgumentParser("mqbroker.celery.beat", description=__doc__)
    parser.add_argument("--schedule", required=True, metavar="PATH", help="keeps when each task was sent last")
    schedule = parser.parse_args().schedule
    scheduler: Any = PatientScheduler  # a class does as well as a name
    BeatByName(app=app, schedule=schedule, scheduler_cls=scheduler, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
