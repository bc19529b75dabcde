"""`manage.py export --to DIR`: the command line of the export."""

import os
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing


class Command(BaseCommand):
    """Exports messages, entries, transactions and checks, and shows the counts of both sides."""

    help = "Exports messages, entries, transactions with their outcomes and checks to Parquet files in a folder."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to",
            required=True,
            type=Path,
            metavar="DIR",
            help="a new or an empty folder, or an earlier export, which stays until the new one is complete",
        )

        parser.add_argument(
            "--reader",
            choices=("jdbc", "source"),
            help="what reads the database: Spark's JDBC, or ADBC in Spark's Python workers, which needs no driver of "
            "Java's (default: jdbc where its driver is found, else source)",
        )

    def handle(self, *args: Any, to: Path, reader: Literal["jdbc", "source"] | None, **options: Any) -> None:
        began = time.monotonic()
        try:
            self._export(to.absolute().resolve(), reader)
        except ExportFailed as failure:
            raise CommandError(f"{failure} ({failure.code})") from failure
        except KeyboardInterrupt as interrupt:
            raise CommandError(f"The export was stopped; {to} is as it was.", returncode=130) from interrupt
        self.stdout.write(f"Exported to {to} in {time.monotonic() - began:.1f} s.")

    def _export(self, target: Path, reader: Literal["jdbc", "source"] | None) -> None:
        if find_spec("pyspark") is None:
            raise ExtraMissing("PySpark is not installed: `./mq export` installs it, as does the extra `analytics`.")
        # Not at the top: the broker runs without the extra, and lists its commands.
        from analytics import job
        from analytics.readers import address

        heading = f"{'table':<14}{'exported':>14}{'broker':>14}"

        def show(counted: job.Counted) -> None:
            nonlocal heading
            row = f"{counted.table:<14}{counted.exported:>14,}{counted.broker:>14,}"
            self.stdout.write(f"{heading}\n{row}" if heading else row)
            self.stdout.flush()
            heading = ""

        conninfo = address.conninfo(settings.DATABASES["default"])
        wishes = job.Wishes(reader, settings.JDBC_JAR, settings.MAX_MESSAGE_BYTES)
        job.export(conninfo, target, os.environ, wishes, show)
