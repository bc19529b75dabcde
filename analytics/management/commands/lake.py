"""`manage.py lake --to DIR`: the command line of the lake."""

import os
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from analytics.management import spark
from mqbroker.embedded.cli.options import path_given

EVERY_SECONDS = 60.0
LEAST_SECONDS = 2.0


def seconds(text: str) -> float:
    """A time between two commits, in seconds."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not LEAST_SECONDS <= found <= 86_400:
        raise ArgumentTypeError(f"{text} is no time between commits: give seconds, from {LEAST_SECONDS:g} to 86400.")
    return found


class Command(BaseCommand):
    """Adds committed messages to a table of Delta Lake while the broker runs, and prints a line for each commit."""

    help = "Keeps a table of Delta Lake with the committed messages, a minute old at most, until it is stopped."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--to", type=path_given, metavar="DIR", help="a new or empty folder, or a lake, which the command continues"
        )
        what.add_argument(
            "--verify", type=path_given, metavar="DIR", help="compare the commits of a lake with the broker's log"
        )
        parser.add_argument(
            "--every",
            type=seconds,
            default=EVERY_SECONDS,
            metavar="SECONDS",
            help="the time between two commits while the lake is not behind (default: 60)",
        )
        parser.add_argument("--once", action="store_true", help="add the messages that the broker has now, then end")
        parser.add_argument(
            "--compact", action="store_true", help="merge small files first; a running lake merges them anyway"
        )

    def handle(self, *args: Any, to: Path | None, verify: Path | None, **options: Any) -> None:
        spark.require("deltalake", "deltalake")
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.export.lake.job import Lake
        from analytics.readers import address

        folder, say = to or verify, spark.say(self)
        assert folder is not None
        # Like an export, the lake runs with lower priority than the processes that serve senders.
        os.nice(settings.EXPORT_NICE)
        lake = Lake(address.conninfo(settings.DIRECT_DATABASE), folder.resolve(), say)
        with spark.failures("The lake was stopped; the next start continues it."):
            if verify:
                lake.verify()
                say(f"Verified {folder}.")
                return
            if options["compact"]:
                lake.compact()
            if options["once"]:
                lake.catch_up()
            else:
                lake.keep(options["every"])
