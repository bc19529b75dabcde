"""The options that the commands of the export and the reports share, and how these commands run beside the broker."""

import os
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing
from analytics.management import manners
from analytics.submit import is_submitted

if TYPE_CHECKING:
    from analytics.session import Cluster


def setting(text: str) -> tuple[str, str]:
    """A setting of Spark as name and value."""
    name, equals, value = text.partition("=")
    if not (name.startswith("spark.") and equals):
        raise ArgumentTypeError(f"{text} is no setting of Spark: give spark.NAME=VALUE.")
    return name, value


def add_to(parser: CommandParser) -> None:
    """Adds the options for Spark: where it runs, its settings, and how far it lowers its priority on this machine."""
    parser.add_argument(
        "--master", default="", metavar="URL", help="Spark's master, such as spark://HOST:7077 (default: here)"
    )
    parser.add_argument(
        "--conf",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of Spark's; every user of the machine can read it, so secrets are better in SPARK_CONF_DIR",
    )
    manners.add_to(parser)


def cluster(options: Mapping[str, Any]) -> "Cluster":
    """Where Spark runs. Raises CommandError if spark-submit has already decided this."""
    # Imported here, because the broker also runs without the extra and must be able to list its commands.
    from analytics import session

    master = options["master"]
    if is_submitted(os.environ) and (master or options["conf"]):
        raise CommandError("spark-submit has started Spark: give --master and --conf to it, before submit.py.")
    return session.Cluster(master, dict(options["conf"]), options["cores"])


def run(command: BaseCommand, options: Mapping[str, Any], work: Callable[[], str], kept: str) -> None:
    """Runs the work of a command and says what it has done, and how long it took.

    Raises CommandError for each failure. `kept` is the sentence for Ctrl-C.
    """
    began = time.monotonic()
    require("pyspark", "PySpark")
    # Imported here, because the broker also runs without the extra and must be able to list its commands.
    from analytics import java
    from analytics.management import classes, watch

    with (
        failures(kept),
        watch.kept(int(options["nice"]), command.stderr.write),
        classes.kept(java.find(java.candidates(os.environ))),
    ):
        command.stdout.write(f"{work()} in {time.monotonic() - began:.1f} s.")


def require(package: str, name: str) -> None:
    """Raises CommandError if a package of the extra is not installed."""
    if find_spec(package) is None:
        how = "`./mq` installs it for its command, as does `pip install 'mqbroker[analytics]'` beside a wheel"
        raise CommandError(f"{name} is not installed: {how}. ({ExtraMissing.code})")


@contextmanager
def failures(stopped: str) -> Iterator[None]:
    """Turns failures of an export into CommandError, and Ctrl-C into the sentence `stopped`."""
    try:
        yield
    except ExportFailed as failure:
        raise CommandError(f"{failure} ({failure.code})") from failure
    except KeyboardInterrupt as interrupt:
        raise CommandError(stopped, returncode=130) from interrupt


def say(command: BaseCommand) -> Callable[[str], None]:
    """Writes a line at once, also to a pipe."""

    def write(line: str) -> None:
        command.stdout.write(line)
        command.stdout.flush()

    return write
