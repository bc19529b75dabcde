"""The export for `spark-submit`: the same options as `./mq export`, on the Spark that the command line names.

    spark-submit --master spark://HOST:7077 analytics/submit.py --to s3a://bucket/export

The database is that of DATABASE_URL. The workers get the module that reads from here, as by `--py-files`; beside Spark
they need pyarrow, adbc-driver-postgresql and msgspec. The machine of this program needs the broker's own requirements.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Whether spark-submit started this program, and has a Java for it."""
    return "PYSPARK_GATEWAY_PORT" in environ


def main(words: list[str]) -> None:
    """Runs the export with these words of the command line."""
    # spark-submit puts this folder on the path; the broker's packages lie one above.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(["submit.py", "export", *words])


if __name__ == "__main__":
    main(sys.argv[1:])
