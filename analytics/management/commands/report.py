"""`manage.py report DIR`: the command line of the reports of an export."""

import os
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing
from analytics.management import spark
from mqbroker.embedded.cli.options import path_given, place_given

MISSING = (
    "PySpark is not installed: `./mq report` installs it, as does `pip install 'mqbroker[analytics]'` beside a wheel."
)


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
            help="a new or an empty folder, or earlier reports; or its URL (default: DIR-reports)",
        )
        parser.add_argument(
            "--console", action="store_true", help="show charts of the reports in the console of the export's broker"
        )
        parser.add_argument(
            "--html", type=path_given, metavar="FILE", help="the page (default: report.html in that folder)"
        )
        spark.add_to(parser)

    def handle(self, *args: Any, export: Path | str, **options: Any) -> None:
        began = time.monotonic()
        if find_spec("pyspark") is None:
            raise CommandError(f"{ExtraMissing(MISSING)} ({ExtraMissing.code})")
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics import java
        from analytics.management import classes, watch

        try:
            with (
                watch.kept(int(options["nice"]), self.stderr.write),
                classes.kept(java.find(java.candidates(os.environ))),
            ):
                place = self._make(export, options)
                self.stdout.write(f"Reported to {place} in {time.monotonic() - began:.1f} s.")
        except ExportFailed as failure:
            raise CommandError(f"{failure} ({failure.code})") from failure
        except KeyboardInterrupt as interrupt:
            raise CommandError(
                "The report was stopped; what was there before is as it was.", returncode=130
            ) from interrupt

    def _make(self, export: Path | str, options: Mapping[str, Any]) -> Path | str:
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.reports import job, shown

        def show(made: job.Made) -> None:
            self.stdout.write(f"{made.name:<16}{made.rows:>10,} rows")
            self.stdout.flush()

        place: Path | str = options["to"] or job.beside(export)
        if options["console"] and not isinstance(place, Path):
            raise CommandError(
                f"The console shows reports in a folder of this machine, and {place} is a URL: give --to."
            )
        job.make(export, place, options["html"], os.environ, spark.cluster(options), show)
        if options["console"] and isinstance(place, Path):
            shown.show(place)
        return place
