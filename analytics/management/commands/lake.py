"""`manage.py lake --to DIR`: the command line of the lake."""

import os
from argparse import ArgumentTypeError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.errors import ExportFailed, ExtraMissing
from mqbroker.embedded.cli.options import path_given

MISSING = "deltalake is not installed: `./mq lake` installs it, as does `pip install 'mqbroker[analytics]'`."
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
    """Adds committed messages to a table of Delta Lake while the broker runs, and says what it has added."""

    help = "Keeps a table of Delta Lake with the committed messages, a minute old at most, until it is stopped."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument(
            "--to", type=path_given, metavar="DIR", help="a new or an empty folder, or a lake, which is continued"
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
        parser.add_argument("--once", action="store_true", help="add what is there now, and end")
        parser.add_argument("--compact", action="store_true", help="merge small files first; the lake does it itself")

    def handle(self, *args: Any, to: Path | None, verify: Path | None, **options: Any) -> None:
        if find_spec("deltalake") is None:
            raise CommandError(f"{ExtraMissing(MISSING)} ({ExtraMissing.code})")
        # Imported here, because the broker also runs without the extra and must be able to list its commands.
        from analytics.export.lake.job import Lake
        from analytics.readers import address

        folder = to or verify
        assert folder is not None
        # As an export, it gives way to senders.
        os.nice(settings.EXPORT_NICE)
        lake = Lake(address.conninfo(settings.DIRECT_DATABASE), folder.resolve(), self._say)
        try:
            if verify:
                lake.verify()
                self._say(f"Verified {folder}.")
                return
            if options["compact"]:
                lake.compact()
            if options["once"]:
                lake.catch_up()
            else:
                lake.keep(options["every"])
        except ExportFailed as failure:
            raise CommandError(f"{failure} ({failure.code})") from failure
        except KeyboardInterrupt as interrupt:
            raise CommandError("The lake was stopped; the next start continues it.", returncode=130) from interrupt

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
