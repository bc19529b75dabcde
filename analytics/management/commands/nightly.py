"""`manage.py nightly DAY`: the process of one nightly run, started by a worker."""

from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandParser


class Command(BaseCommand):
    """Exports to EXPORT_NIGHTLY_TO and makes the reports, unless another process is doing so."""

    help = "Run the nightly export and its reports now, as a worker does when their time has come."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("day", type=date.fromisoformat, help="the day of the run whose outcome is noted")

    def handle(self, *args: Any, day: date, **options: Any) -> None:
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.nightly import process

        process.run(day)
