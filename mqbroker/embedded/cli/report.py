"""Makes reports of an export: outcomes, times, checks, discards, lateness, retries, volumes, as Parquet and a page."""

import argparse

from mqbroker.embedded import commands, environment
from mqbroker.embedded.cli import classes, database, foreground, options
from mqbroker.embedded.cli.settings import refuse_bad_settings


def main(given_words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq report", description=__doc__)
    parser.add_argument(
        "export", type=options.place_given, metavar="FOLDER", help="an export, as `./mq export` writes it; or its URL"
    )
    parser.add_argument(
        "--to",
        type=options.place_given,
        metavar="FOLDER",
        help="where the reports go; or its URL (default: FOLDER-reports, beside it)",
    )
    parser.add_argument(
        "--html", type=options.path_given, metavar="FILE", help="where the page goes (default: report.html among them)"
    )
    parser.add_argument("--console", action="store_true", help="show charts of the reports in the broker's console")
    options.add_spark(parser)
    options.add_data_folder(parser)
    given = parser.parse_args(given_words)
    refuse_bad_settings()
    words = [given.export]
    words += ["--to", given.to] if given.to else []
    words += ["--html", str(given.html)] if given.html else []
    words += options.spark_words(given)
    classes.keep_once()
    if given.console:
        with database.of(given.folder) as environ:
            return foreground.run(commands.manage("report", *words, "--console"), environ)
    # The report only reads files: no database is started.
    return foreground.run(commands.manage("report", *words), environment.common())
