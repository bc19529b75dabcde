"""`manage.py export --to DIR`: the command line of the export."""

import os
import re
import time
from argparse import ArgumentTypeError
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing

if TYPE_CHECKING:
    from analytics.session import Cluster

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
MISSING = "PySpark is not installed: `./mq export` installs it, as does the extra `analytics`."

# The broker's processes need the others: decision 32 has the figures.
CORES = 1
NICE = 0


def target(text: str) -> Path | str:
    """A folder of this machine, or the URL of one. As a path a URL would name one, too: s3a:/bucket in this folder."""
    return text if URL.match(text) else Path(text).absolute().resolve()


def setting(text: str) -> tuple[str, str]:
    """A setting of Spark's."""
    name, equals, value = text.partition("=")
    if not (name.startswith("spark.") and equals):
        raise ArgumentTypeError(f"{text} is no setting of Spark: give spark.NAME=VALUE.")
    return name, value


def tasks(text: str) -> int:
    """A number of tasks."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text} is no number of tasks: give a whole number from 1 on.")
    return int(text)


def noted_as(target: Path | str) -> str:
    """The name under which the broker notes an export: of the nightly one as the setting has it, by which it waits."""
    nightly: str = settings.EXPORT_NIGHTLY_TO
    return nightly if nightly and Path(nightly).absolute().resolve() == target else str(target)


class Command(BaseCommand):
    """Exports messages, entries, transactions and checks, and shows the counts of both sides."""

    help = "Exports messages, entries, transactions with their outcomes and checks to Parquet files in a folder."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--to",
            type=target,
            metavar="DIR",
            help="a new or an empty folder, or an earlier export, to which what is new since is added; or its URL",
        )
        what.add_argument("--verify", type=target, metavar="DIR", help="compare an export with its list and the broker")
        parser.add_argument("--compact", action="store_true", help="gather the small files of each day into large ones")
        parser.add_argument(
            "--reader",
            choices=("source", "jdbc"),
            default="source",
            help="what reads the database: ADBC in Spark's Python workers, or Spark's JDBC, which needs a driver of "
            "Java's (default: %(default)s)",
        )
        parser.add_argument(
            "--master", default="", metavar="URL", help="where Spark runs, such as spark://HOST:7077 (default: here)"
        )
        parser.add_argument(
            "--conf",
            type=setting,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting of Spark's; every user of the machine can read it, so secrets are better in SPARK_CONF_DIR",
        )
        parser.add_argument(
            "--cores",
            type=tasks,
            default=CORES,
            metavar="N",
            help="how many tasks run at once where Spark runs here (default: %(default)s, so that senders do not wait)",
        )
        parser.add_argument(
            "--nice",
            type=int,
            choices=range(20),
            default=NICE,
            metavar="N",
            help="by how much Java and its workers step back for other processes, 19 at most (default: %(default)s)",
        )

    def handle(self, *args: Any, to: Path | str | None, verify: Path | str | None, **options: Any) -> None:
        began = time.monotonic()
        if find_spec("pyspark") is None:
            raise CommandError(f"{ExtraMissing(MISSING)} ({ExtraMissing.code})")
        place = to or verify or ""
        try:
            done = self._export(place, options) if to else self._verify(place, options)
        except ExportFailed as failure:
            raise CommandError(f"{failure} ({failure.code})") from failure
        except KeyboardInterrupt as interrupt:
            raise CommandError(f"The export was stopped; {place} is as it was.", returncode=130) from interrupt
        self.stdout.write(f"{done} {place} in {time.monotonic() - began:.1f} s.")

    def _verify(self, place: Path | str, options: Mapping[str, Any]) -> str:
        # Not at the top: the broker runs without the extra, and lists its commands.
        from analytics import job
        from analytics.readers import address

        with job.reached(place, os.environ, self._cluster(options)) as reached:
            job.verify(address.conninfo(settings.DATABASES["default"]), reached, self.stdout.write)
        return "Verified"

    def _export(self, target: Path | str, options: Mapping[str, Any]) -> str:
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
        wishes = job.Wishes(
            reader=options["reader"],
            jdbc_jar=settings.JDBC_JAR,
            heaviest=settings.MAX_MESSAGE_BYTES,
            noted_as=noted_as(target),
            compact=options["compact"],
            cluster=self._cluster(options),
        )
        if reason := job.export(conninfo, target, os.environ, wishes, show):
            self.stdout.write(f"Retention that waits for exports does not know of this one: {reason}.")
        return "Exported to"

    def _cluster(self, options: Mapping[str, Any]) -> "Cluster":
        from analytics import session

        if session.is_submitted(os.environ) and (options["master"] or options["conf"]):
            raise CommandError("spark-submit has started Spark: give --master and --conf to it, before submit.py.")
        return session.Cluster(options["master"], dict(options["conf"]), options["cores"], options["nice"])
