"""`manage.py report DIR`: the command line of the reports of an export."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.management import spark
from mqbroker.embedded.cli.options import path_given, place_given


class Command(BaseCommand):
    """Makes the reports of an export, and prints the number of rows of each report."""

    help = "Makes reports of an export: Parquet files, and a page of HTML that loads nothing."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "export", type=place_given, metavar="DIR", help="an export, as `export` writes it; or its URL"
        )
        parser.add_argument(
            "--to",
            type=place_given,
            metavar="DIR",
            help="a new or empty folder, or earlier reports; or the folder's URL (default: DIR-reports)",
        )
        parser.add_argument(
            "--console", action="store_true", help="show charts of the reports in the console of the export's broker"
        )
        parser.add_argument(
            "--html",
            type=path_given,
            metavar="FILE",
            help="the file of the page (default: report.html in the folder of the reports)",
        )
        spark.add_to(parser)

    def handle(self, *args: Any, export: Path | str, **options: Any) -> None:
        stopped = "The report was stopped; what was there before is as it was."
        spark.run(self, options, lambda: f"Reported to {self._make(export, options)}", stopped)

    def _make(self, export: Path | str, options: Mapping[str, Any]) -> Path | str:
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.reports import job, shown

        say = spark.say(self)
        place: Path | str = options["to"] or job.beside(export)
        if options["console"] and not isinstance(place, Path):
            raise CommandError(
                f"The console shows reports in a folder of this machine, and {place} is a URL: give --to."
            )
        job.make(
            export,
            place,
            options["html"],
            os.environ,
            spark.cluster(options),
            lambda made: say(f"{made.name:<16}{made.rows:>10,} rows"),
        )
        if options["console"] and isinstance(place, Path):
            shown.show(place)
        return place
