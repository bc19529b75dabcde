"""Options that the commands of the export and the reports share: the place of the files, and Spark's settings."""

import os
from argparse import ArgumentTypeError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser

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
    manners.add_to(parser)


def cluster(options: Mapping[str, Any]) -> "Cluster":
    """Where Spark runs. Raises CommandError if spark-submit has already decided this."""
    # Imported here, because the broker also runs without the extra and must be able to list its commands.
    from analytics import session

    master = options["master"]
    if is_submitted(os.environ) and (master or options["conf"]):
        raise CommandError("spark-submit has started Spark: give --master and --conf to it, before submit.py.")
    return session.Cluster(master, dict(options["conf"]), options["cores"])
