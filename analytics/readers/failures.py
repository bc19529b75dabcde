"""Turns the failure of an export or report into a sentence: of the database, Spark, its Python workers, or the disk."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import adbc_driver_manager
import psycopg
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.errors import PySparkException

from analytics.errors import ExportFailed, ExtraMissing

# The error that a worker raised is one line in the trace that Spark returns.
OF_ADBC = re.compile(r"^(?:.*: )?adbc_driver_manager\.\w+: (?P<reason>.+)$", re.MULTILINE)
# Modules that are not from a package index.
OURS = frozenset(("analytics", "store"))
OF_IMPORT = re.compile(r"No module named '(?P<module>\w+)|\[PACKAGE_NOT_INSTALLED\] (?P<package>\w+)")


@contextmanager
def failures_as_ours() -> Iterator[None]:
    """Turns failures of the database, of Spark and of the disk into ExportFailed with one sentence."""
    try:
        yield
    except psycopg.errors.UndefinedTable as problem:
        raise ExportFailed("The database has no tables of the broker: `./mq up` makes them.") from problem
    except (psycopg.Error, adbc_driver_manager.Error) as problem:
        raise ExportFailed(f"The database did not answer as it should: {_first_line(problem)}.") from problem
    except (PySparkException, Py4JError) as problem:
        raise _of_spark(problem) from problem
    except OSError as problem:
        raise ExportFailed(f"The files could not be read or written: {problem}.") from problem


def _of_spark(problem: Exception) -> ExportFailed:
    """The failure as ExportFailed: a worker's because of the database or a missing package, or Spark's own."""
    if answered := OF_ADBC.search(str(problem)):
        return ExportFailed(f"The database did not answer as it should: {answered['reason'].strip(' :.')}.")
    if lacking := OF_IMPORT.search(str(problem)):
        module = lacking["module"] or lacking["package"].lower()
        if module in OURS:
            return ExtraMissing(
                f"Spark's Python workers lack the broker's code ({module}): put its checkout on their PYTHONPATH."
            )
        return ExtraMissing(
            f"Spark's Python workers lack {module}: install pyarrow, "
            "adbc-driver-postgresql and msgspec for the Python that PYSPARK_PYTHON names, or export by --reader jdbc."
        )
    return ExportFailed(f"Spark stopped: {_first_line(problem)}.")


def _first_line(problem: Exception) -> str:
    # The reason, from Java, stands below a line of py4j.
    lines = [line for line in str(problem).splitlines() if line.strip() and not line.startswith("An error occurred")]
    return lines[0].strip(" :.") if lines else type(problem).__name__
