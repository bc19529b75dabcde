"""The nightly run: begun once a night by one worker, again after a failure, in processes that outlive the worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings

from analytics.nightly import runs
from store.db import connections
from tests.analytics.conftest import ROOT
from tests.broker import forks
from tests.broker.polling import eventually
from tests.store.keeper import Keeper

# What a worker does when it starts a run, and its sudden end.
WORKER = """
import os, signal, sys
import django
django.setup()
from analytics.nightly import runs
runs.start(sys.argv[1])
os.kill(os.getpid(), signal.SIGKILL)
"""
# A worker whose Python has no PySpark: two ticks.
WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
import django
django.setup()
from analytics.nightly import tasks
from store.process import runtime
with runtime.installed(runtime.Runtime()):
    tasks.nightly()
    tasks.nightly()
"""
SPARK_SECONDS = 600


@pytest.fixture
def keeper(busy_database: str) -> Iterator[Keeper]:
    """The broker's own code on a database with some messages."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()
    with Keeper(busy_database) as keeper:
        keeper.send("orders", "order 1")
        yield keeper


def minutes_ago(minutes: float) -> time:
    """A time of the day, in UTC."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).time()


def claimed(keeper: Keeper, begun: time, **others: Any) -> list[int]:
    """The tries that a tick begins, where the night's time is `begun`; a process has its lock at once."""
    settings.EXPORT_NIGHTLY_AT, before = begun, settings.EXPORT_NIGHTLY_AT
    try:
        parameters = {**runs.claim(), "start_seconds": 0, **others}
    finally:
        settings.EXPORT_NIGHTLY_AT = before
    return [row.tries for row in keeper.do(connections.read(runs.CLAIM_NIGHTLY, parameters))]


def end(keeper: Keeper, failure: str | None) -> None:
    """Notes how the only run ended."""
    [row] = keeper.sql("SELECT day FROM nightly_run")
    keeper.do(connections.read(runs.END_NIGHTLY, {"day": row.day, "failure": failure}))


def test_a_night_is_begun_once_in_the_six_hours_after_its_time(keeper: Keeper) -> None:
    assert claimed(keeper, minutes_ago(-5)) == []
    assert claimed(keeper, minutes_ago(6 * 60 + 5)) == []

    assert claimed(keeper, minutes_ago(5), start_seconds=60) == [1]

    # Its process needs some seconds to take the lock.
    assert claimed(keeper, minutes_ago(5), start_seconds=60) == []
    end(keeper, None)
    assert claimed(keeper, minutes_ago(5)) == []


def test_a_night_that_failed_is_begun_three_times_and_each_failure_counts(keeper: Keeper) -> None:
    assert claimed(keeper, minutes_ago(5)) == [1]
    end(keeper, "export: no room")
    assert claimed(keeper, minutes_ago(5)) == [2]
    # Killed: it left no outcome.
    assert claimed(keeper, minutes_ago(5)) == [3]
    end(keeper, "export: no room")

    assert claimed(keeper, minutes_ago(5)) == []
    assert keeper.sql("SELECT tries, failures, failure FROM nightly_run") == [(3, 3, "export: no room")]


def test_none_is_begun_while_a_session_has_the_lock(keeper: Keeper) -> None:
    with keeper.session() as another:
        another.execute("SELECT pg_advisory_lock(%s)", (runs.LOCK,))
        assert claimed(keeper, minutes_ago(5)) == []

    assert eventually(lambda: claimed(keeper, minutes_ago(5))) == [1]


def environment(database: str, to: Path, **others: str) -> dict[str, str]:
    """The settings of a worker."""
    return {
        **os.environ,
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "mqbroker.settings",
        "MQBROKER_EXPORT_NIGHTLY_TO": str(to),
        "MQBROKER_EXPORT_NIGHTLY_AT": minutes_ago(5).strftime("%H:%M"),
        **others,
    }


def test_a_worker_without_spark_says_so_once_and_begins_nothing(keeper: Keeper, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_SPARK]

    done = forks.run(command, environment(keeper.url, tmp_path))

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("PySpark is not installed, so this worker starts no nightly export") == 1
    assert keeper.sql("SELECT day FROM nightly_run") == []


def test_a_run_that_takes_too_long_is_ended_with_all_that_it_started(keeper: Keeper, tmp_path: Path) -> None:
    target = tmp_path / "export"
    # As a broker's own: what gives way is in another session than the process that is ended.
    manners = {"MQBROKER_EXPORT_NICE": "19"}
    limits = environment(keeper.url, target, MQBROKER_EXPORT_NIGHTLY_MAX_SECONDS="3", **manners)
    [day] = night(keeper)

    done = forks.run([sys.executable, "manage.py", "nightly", str(day)], limits)

    assert done.returncode == 0
    reason = "export: it took longer than EXPORT_NIGHTLY_MAX_SECONDS (3 s)"
    assert keeper.sql("SELECT failures, failure FROM nightly_run") == [(1, reason)]
    assert eventually(lambda: not processes_of(target), within_seconds=20)
    assert not target.exists()


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_run_goes_on_when_its_worker_is_killed_and_leaves_export_reports_and_charts(
    keeper: Keeper, tmp_path: Path
) -> None:
    target = tmp_path / "export"
    [day] = night(keeper)

    worker = [sys.executable, "-c", WORKER, str(day)]
    killed = forks.run(worker, environment(keeper.url, target))

    assert killed.returncode == -signal.SIGKILL
    eventually(
        lambda: keeper.sql("SELECT day FROM nightly_run WHERE ended_at IS NOT NULL"), within_seconds=SPARK_SECONDS
    )
    assert keeper.sql("SELECT tries, failures, failure FROM nightly_run") == [(1, 0, None)]
    [noted] = keeper.sql("SELECT target, segment_id, rows FROM export")
    assert (noted.target, noted.segment_id, noted.rows["messages"]) == (str(target), 0, 1)
    assert (tmp_path / "export-reports" / "report.html").is_file()
    charts = {row.title: row for row in keeper.sql("SELECT title, series, taken_at FROM report_chart")}
    assert charts["Messages by hour"].series == {"messages": [1]}
    [moment] = keeper.sql("SELECT taken_at FROM export")
    assert {row.taken_at for row in charts.values()} == {moment.taken_at}


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_lock_lasts_as_long_as_the_export_when_the_process_of_the_run_is_killed(
    keeper: Keeper, tmp_path: Path
) -> None:
    target = tmp_path / "export"
    [day] = night(keeper)
    command = [sys.executable, "manage.py", "nightly", str(day)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(keeper.url, target)) as run:
        eventually(lambda: (tmp_path / ".export.unfinished").exists(), within_seconds=60)
        run.kill()

    assert keeper.sql("SELECT target FROM export") == []
    assert claimed(keeper, minutes_ago(5)) == []
    eventually(lambda: keeper.sql("SELECT target FROM export"), within_seconds=SPARK_SECONDS)
    # The export is complete; its reports are left to the next try.
    assert eventually(lambda: claimed(keeper, minutes_ago(5)), within_seconds=30) == [2]
    assert keeper.sql("SELECT failures FROM nightly_run") == [(1,)]


def night(keeper: Keeper) -> list[date]:
    """The day of a run that a worker has claimed."""
    assert claimed(keeper, minutes_ago(5)) == [1]
    return [row.day for row in keeper.sql("SELECT day FROM nightly_run")]


def processes_of(target: Path) -> list[psutil.Process]:
    """The processes that export to this folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(target) in word for word in process.info["cmdline"] or ())
    ]
