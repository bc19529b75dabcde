"""`manage.py export`: what it prints, how it ends, and what it leaves when it is killed."""

import os
import sys
from pathlib import Path

import pytest

from analytics.files import manifest
from tests.analytics.conftest import Exported, Killed, content, done
from tests.analytics.parquet import sign
from tests.analytics.past import Past
from tests.broker import databases, forks


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A folder that holds an earlier export."""
    sign(tmp_path)
    return tmp_path


def test_a_killed_export_leaves_the_earlier_one_as_it_was(killed: Killed) -> None:
    assert killed.after == killed.before


def test_the_export_after_a_killed_one_is_whole_and_alone(exported: Exported) -> None:
    assert (exported.status, exported.err) == (0, "")
    assert sorted(path.name for path in exported.folder.iterdir()) == sorted([manifest.NAME, *manifest.TABLES])
    assert "messages/earlier.parquet" not in content(exported.folder)
    assert list(exported.folder.parent.iterdir()) == [exported.folder]


def test_rows_are_counted_on_both_sides_and_printed(exported: Exported, past: Past) -> None:
    held = {
        "messages": len(past.messages),
        "entries": len(past.entries),
        "transactions": len(past.transactions),
        "checks": len(past.checks),
        "timers": len(past.timers),
    }

    *table, unnoted, last = exported.out.splitlines()

    assert table == [
        f"{'table':<14}{'exported':>14}{'broker':>14}",
        *(f"{name:<14}{held[name]:>14,}{held[name]:>14,}" for name in held),
    ]
    # A role that only reads may export.
    assert unnoted == (
        "This export was not noted in the broker, so retention does not know it: permission denied for table export."
    )
    assert last.startswith(f"Exported to {exported.folder} in ")


def test_a_refusal_is_one_sentence_with_its_code(reader: str, target: Path) -> None:
    before = content(target)

    refused = done(reader, target, "--reader", "jdbc", MQBROKER_JDBC_JAR="/none.jar")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("CommandError: MQBROKER_JDBC_JAR names /none.jar, which is no file: ")
    assert refused.stderr.endswith(" (driver_missing)\n")
    assert len(refused.stderr.splitlines()) == 1
    assert content(target) == before


@pytest.mark.parametrize("program", [["manage.py"], ["-m", "mqbroker.embedded.cli"]])
def test_a_number_of_tasks_that_is_none_is_refused(program: list[str], tmp_path: Path) -> None:
    command = [sys.executable, *program, "export", "--to", str(tmp_path / "export"), "--cores", "0"]

    refused = forks.run(command, os.environ)

    assert refused.returncode != 0
    assert "0 is no number of tasks: give a whole number from 1 on." in refused.stderr


def test_a_database_that_is_away_is_one_sentence(target: Path) -> None:
    refused = done("postgresql://nobody@127.0.0.1:1/nothing", target)

    assert (refused.returncode, refused.stdout) == (1, "")
    said = "CommandError: The database did not answer as it should: connection failed: "
    assert refused.stderr.startswith(said)
    assert refused.stderr.endswith(" (export_failed)\n")


def test_a_database_without_the_brokers_tables_is_one_sentence(target: Path) -> None:
    with databases.fresh() as empty:
        refused = done(empty, target)

    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "CommandError: The database has no tables of the broker: `./mq up` makes them. (export_failed)\n"
    )
