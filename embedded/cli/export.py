"""Writes messages, entries and transactions with their outcomes to Parquet, and checks the row counts."""

import argparse

from embedded import commands
from embedded.cli import database, foreground, options
from embedded.cli.settings import refuse_bad_settings


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq export", description=__doc__)
    parser.add_argument("--to", type=options.path_given, required=True, metavar="FOLDER", help="where the files go")
    parser.add_argument("--reader", choices=("jdbc", "source"), help="how to read (default: jdbc where found)")
    options.add_data_folder(parser)
    given = parser.parse_args(words)
    refuse_bad_settings()
    reader = ["--reader", given.reader] if given.reader else []
    with database.of(given.folder) as environment:
        return foreground.run(commands.manage("export", "--to", str(given.to), *reader), environment)
