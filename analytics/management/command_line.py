"""`./mq export`, `lake` and `report`: the commands of manage.py with all their options, on a folder's database."""

import argparse
from collections.abc import Sequence

from django.core.management.base import BaseCommand, CommandParser

from analytics.management.commands import export as of_export
from analytics.management.commands import lake as of_lake
from analytics.management.commands import report as of_report
from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import database, foreground, options
from mqbroker.embedded.cli.settings import refuse_bad_settings


def export(words: Sequence[str]) -> int:
    """Runs `manage.py export`; returns its exit code."""
    return _run("export", of_export.Command(), words)


def lake(words: Sequence[str]) -> int:
    """Runs `manage.py lake`; returns its exit code."""
    return _run("lake", of_lake.Command(), words)


def report(words: Sequence[str]) -> int:
    """Runs `manage.py report`; returns its exit code. Only the option --console needs a database."""
    return _run("report", of_report.Command(), words)


def _run(name: str, command: BaseCommand, words: Sequence[str]) -> int:
    parser = CommandParser(prog=f"mq {name}", description=command.help, called_from_command_line=True)
    command.add_arguments(parser)
    options.add_data_folder(parser)
    # Refuses invalid words here, before the database is started.
    given = parser.parse_args(words)
    refuse_bad_settings()
    if not getattr(given, "console", True):
        return foreground.run(commands.manage(name, *_own(words)), environment.common())
    with database.of(given.folder) as environ:
        return foreground.run(commands.manage(name, *_own(words)), environ)


def _own(words: Sequence[str]) -> list[str]:
    """The words of the command: all but the data folder."""
    folder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_data_folder(folder)
    return folder.parse_known_args(words)[1]
