"""The export and its reports for `spark-submit`, with the options of `./mq export` and `./mq report`.

    spark-submit --master spark://HOST:7077 analytics/submit.py --to s3a://bucket/export
    spark-submit --master spark://HOST:7077 analytics/submit.py report s3a://bucket/export

DATABASE_URL names the database. This program sends the workers the module that reads the database, as `--py-files`
does; besides Spark the workers need pyarrow, adbc-driver-postgresql and msgspec. The machine of this program needs the
broker's own requirements.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

COMMANDS = ("export", "report")


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Whether spark-submit started this program and Java for it."""
    return "PYSPARK_GATEWAY_PORT" in environ


def main(words: list[str]) -> None:
    """Runs the command that is the first argument; without arguments the export."""
    # spark-submit puts this folder on the path; the broker's packages are in the folder above.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    from django.core.management import execute_from_command_line

    named = words if words and words[0] in COMMANDS else ["export", *words]
    execute_from_command_line(["submit.py", *named])


if __name__ == "__main__":
    main(sys.argv[1:])
