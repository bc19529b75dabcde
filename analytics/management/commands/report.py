"""`manage.py report DIR`: the command line of the reports of an export."""

import os
import time
from argparse import ArgumentTypeError
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing
from analytics.management import spark
from analytics.management.spark import URL

MISSING = "PySpark is not installed: `./mq report` installs it, as does the extra `analytics`."


def local(text: str) -> Path:
    """A place on this machine. As a path a URL would name one, too."""
    if URL.match(text):
        raise ArgumentTypeError(f"{text} is a URL, and reports are made of folders of this machine only: give one.")
    return Path(text).absolute().resolve()


class Command(BaseCommand):
    """Makes the reports of an export, and shows how many rows each has."""

    help = "Makes reports of an export: Parquet files, and a page of HTML that loads nothing."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("export", type=local, metavar="DIR", help="an export, as `export` writes it")
        parser.add_argument(
            "--to",
            type=local,
            metavar="DIR",
            help="a new or an empty folder, or earlier reports (default: DIR-reports)",
        )
        parser.add_argument(
            "--console", action="store_true", help="show charts of the reports in the console of the export's broker"
        )
        parser.add_argument("--html", type=local, metavar="FILE", help="the page (default: report.html in that folder)")
        spark.add_to(parser)

    def handle(
        self, *args: Any, export: Path, to: Path | None, html: Path | None, console: bool, **options: Any
    ) -> None:
        began = time.monotonic()
        if find_spec("pyspark") is None:
            raise CommandError(f"{ExtraMissing(MISSING)} ({ExtraMissing.code})")
        spark.give_way(options)
        try:
            target = self._make(export, to, html, options, console=console)
        except ExportFailed as failure:
            raise CommandError(f"{failure} ({failure.code})") from failure
        except KeyboardInterrupt as interrupt:
            raise CommandError(
                "The report was stopped; what was there before is as it was.", returncode=130
            ) from interrupt
        self.stdout.write(f"Reported to {target} in {time.monotonic() - began:.1f} s.")

    def _make(
        self, export: Path, to: Path | None, html: Path | None, options: Mapping[str, Any], *, console: bool
    ) -> Path:
        # Not at the top: the broker runs without the extra, and lists its commands.
        from analytics.reports import job, shown

        def show(made: job.Made) -> None:
            self.stdout.write(f"{made.name:<16}{made.rows:>10,} rows")
            self.stdout.flush()

        target = to or job.beside(export)
        job.make(export, target, html, os.environ, spark.cluster(options), show)
        if console:
            shown.show(target)
        return target
