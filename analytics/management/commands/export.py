"""`manage.py export --to DIR`: the command line of the export."""

import os
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing
from analytics.management import spark
from mqbroker.embedded.cli.options import place_given

MISSING = (
    "PySpark is not installed: `./mq export` installs it, as does `pip install 'mqbroker[analytics]'` beside a wheel."
)


class Command(BaseCommand):
    """Exports messages, entries, transactions and checks, and prints the row counts of the broker and of the files."""

    help = "Exports messages, entries, transactions with their outcomes and checks to Parquet files in a folder."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--to",
            type=place_given,
            metavar="DIR",
            help="a new or an empty folder, or an earlier export, to which what is new since is added; or its URL",
        )
        what.add_argument(
            "--verify", type=place_given, metavar="DIR", help="compare an export with its list and the broker"
        )
        parser.add_argument(
            "--format",
            choices=("parquet", "delta", "iceberg"),
            default="parquet",
            help="tables to keep beside the files; later exports to the folder add to them (default: %(default)s)",
        )
        parser.add_argument("--compact", action="store_true", help="gather the small files of each day into large ones")
        parser.add_argument(
            "--reader",
            choices=("source", "jdbc"),
            default="source",
            help="what reads the database: ADBC in Spark's Python workers, or Spark's JDBC, which needs a driver of "
            "Java's (default: %(default)s)",
        )
        parser.add_argument(
            "--progress",
            action="store_true",
            help="a line a second with table, rows and rate; a terminal has it anyway",
        )
        spark.add_to(parser)

    def handle(self, *args: Any, to: Path | str | None, verify: Path | str | None, **options: Any) -> None:
        began = time.monotonic()
        if find_spec("pyspark") is None:
            raise CommandError(f"{ExtraMissing(MISSING)} ({ExtraMissing.code})")
        place = to or verify or ""
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics import java
        from analytics.management import classes, watch

        try:
            with (
                watch.kept(int(options["nice"]), self.stderr.write),
                classes.kept(java.find(java.candidates(os.environ))),
            ):
                done = self._export(place, options) if to else self._verify(place, options)
                self.stdout.write(f"{done} {place} in {time.monotonic() - began:.1f} s.")
        except ExportFailed as failure:
            raise CommandError(f"{failure} ({failure.code})") from failure
        except KeyboardInterrupt as interrupt:
            raise CommandError(f"The export was stopped; {place} is as it was.", returncode=130) from interrupt

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _verify(self, place: Path | str, options: Mapping[str, Any]) -> str:
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.management import installation
        from analytics.readers import address, opening

        with opening.reached(place, os.environ, spark.cluster(options)) as reached:
            installation.verify(address.conninfo(settings.DIRECT_DATABASE), reached, self.stdout.write, place)
        return "Verified"

    def _export(self, target: Path | str, options: Mapping[str, Any]) -> str:
        from analytics.export import job
        from analytics.files import noted
        from analytics.management import installation
        from analytics.readers import address, opening

        heading = f"{'table':<14}{'exported':>14}{'broker':>14}"

        def announce(cell: str) -> job.Announce:
            def show(counted: job.Counted) -> None:
                nonlocal heading
                before = f"{cell:<14}" if cell else ""
                row = f"{before}{counted.table:<14}{counted.exported:>14,}{counted.broker:>14,}"
                if heading:
                    self.stdout.write(f"{'cell':<14}{heading}" if cell else heading)
                self.stdout.write(row)
                self.stdout.flush()
                heading = ""

            return show

        wishes = opening.Wishes(
            reader=options["reader"],
            jdbc_jar=settings.JDBC_JAR,
            heaviest=settings.MAX_MESSAGE_BYTES,
            noted_as=noted.names_of(target)[0],
            compact=options["compact"],
            cluster=spark.cluster(options),
            format=options["format"],
            say=self._say if options["progress"] or sys.stdout.isatty() else None,
        )
        control = address.conninfo(settings.DIRECT_DATABASE)
        for reason in installation.export(control, target, os.environ, wishes, announce):
            self.stdout.write(f"Retention that waits for exports does not know of this one: {reason}.")
        return "Exported to"
