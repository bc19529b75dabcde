"""`manage.py export --to DIR`: the command line of the export."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from analytics.management import spark
from mqbroker.embedded.cli.options import place_given


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
            help="a new or empty folder, or an earlier export, to which the export adds what is new; or the folder's "
            "URL",
        )
        what.add_argument(
            "--verify", type=place_given, metavar="DIR", help="compare an export with its manifest and the broker"
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
            help="the reader of the database: ADBC in Spark's Python workers, or Spark's JDBC, which needs a Java "
            "driver (default: %(default)s)",
        )
        parser.add_argument(
            "--progress",
            action="store_true",
            help="print a line a second with table, rows and rate; a terminal always shows it",
        )
        spark.add_to(parser)

    def handle(self, *args: Any, to: Path | str | None, verify: Path | str | None, **options: Any) -> None:
        place, work = to or verify or "", self._export if to else self._verify
        spark.run(self, options, lambda: work(place, options), f"The export was stopped; {place} is as it was.")

    def _verify(self, place: Path | str, options: Mapping[str, Any]) -> str:
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.management import installation
        from analytics.readers import address, opening

        with opening.reached(place, os.environ, spark.cluster(options)) as reached:
            installation.verify(address.conninfo(settings.DIRECT_DATABASE), reached, self.stdout.write, place)
        return f"Verified {place}"

    def _export(self, target: Path | str, options: Mapping[str, Any]) -> str:
        from analytics.export import job
        from analytics.files import noted
        from analytics.management import installation
        from analytics.readers import address, opening

        say, headings = spark.say(self), [f"{'table':<14}{'exported':>14}{'broker':>14}"]

        def announce(cell: str) -> job.Announce:
            before = f"{cell:<14}" if cell else ""

            def show(counted: job.Counted) -> None:
                if headings:
                    say(f"{'cell':<14}{headings.pop()}" if cell else headings.pop())
                say(f"{before}{counted.table:<14}{counted.exported:>14,}{counted.broker:>14,}")

            return show

        wishes = opening.Wishes(
            reader=options["reader"],
            jdbc_jar=settings.JDBC_JAR,
            heaviest=settings.MAX_MESSAGE_BYTES,
            noted_as=noted.names_of(target)[0],
            compact=options["compact"],
            cluster=spark.cluster(options),
            format=options["format"],
            say=say if options["progress"] or sys.stdout.isatty() else None,
        )
        control = address.conninfo(settings.DIRECT_DATABASE)
        for reason in installation.export(control, target, os.environ, wishes, announce):
            self.stdout.write(f"This export was not noted in the broker, so retention does not know it: {reason}.")
        return f"Exported to {target}"
