"""What the commands of the export and of its reports ask for: a place, and a Spark."""

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from analytics.management import background
from analytics.submit import is_submitted

if TYPE_CHECKING:
    from analytics.session import Cluster

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# Senders wait for a second one: decision 34 has the figures.
CORES = 1


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


def add_to(parser: CommandParser) -> None:
    """Adds the options of a Spark that runs on this machine."""
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
        help="how many tasks run at once where Spark runs here (default: %(default)s; 2 where no sender shares it)",
    )
    parser.add_argument(
        "--nice",
        type=int,
        choices=range(20),
        default=settings.EXPORT_NICE,
        metavar="N",
        help="by how much all of it gives way to other processes, on as many processors as --cores: 19 at most, 0: not "
        "at all (default: %(default)s)",
    )


def give_way(options: Mapping[str, Any]) -> None:
    """Has the rest of the command give way to others, unless spark-submit has started Spark by now."""
    if not is_submitted(os.environ):
        background.enter(options["nice"], 0 if options.get("master") else options["cores"])


def cluster(options: Mapping[str, Any]) -> "Cluster":
    """Where Spark runs. Raises CommandError where spark-submit has said so."""
    # Not at the top: the broker runs without the extra, and lists its commands.
    from analytics import session

    master = options.get("master", "")
    if is_submitted(os.environ) and (master or options["conf"]):
        raise CommandError("spark-submit has started Spark: give --master and --conf to it, before submit.py.")
    return session.Cluster(master, dict(options["conf"]), options["cores"])
