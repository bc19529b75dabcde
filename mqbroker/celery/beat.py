"""Beat: `python -m mqbroker.celery.beat --schedule PATH` sends each periodic task when it is due, until a signal.

Tasks are sent by name. Celery's own command line, `celery beat`, first imports the tasks' modules, Django's apps and a
shell, and needs twice the processor time to start.
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
    """Celery's scheduler, changed to sleep until a task is due.

    The unchanged scheduler wakes up 10 ms earlier and computes the time again, more than half of beat's work.
    """

    def tick(self, *given: Any, **named: Any) -> float:
        """Celery's `tick`, which here also touches the file by which `mqbroker.alive` sees that beat is working."""
        beating.touched(Path(self.schedule_filename)).touch()  # type: ignore[attr-defined]  # missing in the stubs
        return float(super().tick(*given, **named))

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """How many seconds to sleep when the next task is due in `n` seconds."""
        return float(super().adjust(n, drift))  # type: ignore[arg-type]  # the stubs expect whole seconds


class BeatByName(Beat):
    """Celery's beat, without importing the modules of the tasks."""

    def init_loader(self) -> None:
        """Completes the app."""
        app.finalize()

    def install_sync_handler(self, service: Service) -> None:
        """Makes a signal end the service, which then writes its schedule.

        Celery's own handler writes and closes the schedule at once, even while a task is being sent: beat then
        continues and fails at the next access.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)


def end(number: int, _: FrameType | None) -> NoReturn:
    """Ends beat; called at a signal."""
    raise SystemExit


def main() -> None:
    """Sends tasks until a signal."""
    parser = argparse.ArgumentParser("mqbroker.celery.beat", description=__doc__)
    parser.add_argument(
        "--schedule", required=True, metavar="PATH", help="the file with the time at which each task was last sent"
    )
    schedule = parser.parse_args().schedule
    scheduler: Any = PatientScheduler  # beat accepts a class in place of a name
    BeatByName(app=app, schedule=schedule, scheduler_cls=scheduler, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
