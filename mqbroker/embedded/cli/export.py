"""Writes messages, entries and transactions with their outcomes to Parquet, and checks the row counts."""

import argparse

from mqbroker.embedded import commands
from mqbroker.embedded.cli import classes, database, foreground, options
from mqbroker.embedded.cli.settings import refuse_bad_settings


def main(given_words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq export", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--to",
        type=options.place_given,
        metavar="FOLDER",
        help="where the files go, or what is new to them; or its URL",
    )
    what.add_argument(
        "--verify", type=options.place_given, metavar="FOLDER", help="compare an export with its list; or its URL"
    )
    parser.add_argument(
        "--format", choices=("parquet", "delta", "iceberg"), help="tables to keep beside the files (default: parquet)"
    )
    parser.add_argument("--compact", action="store_true", help="gather the small files of each day into large ones")
    parser.add_argument("--reader", choices=("source", "jdbc"), help="how to read (default: source)")
    options.add_spark(parser)
    options.add_data_folder(parser)
    given = parser.parse_args(given_words)
    refuse_bad_settings()
    words = ["--to", given.to] if given.to else ["--verify", given.verify]
    words += ["--reader", given.reader] if given.reader else []
    words += ["--format", given.format] if given.format else []
    words += ["--compact"] if given.compact else []
    words += options.spark_words(given)
    classes.keep_once()
    with database.of(given.folder) as environment:
        return foreground.run(commands.manage("export", *words), environment)
