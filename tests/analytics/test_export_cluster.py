"""Exports by a cluster of Spark: a master and two workers, which get nothing of the broker but the reader's module."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from analytics.files import manifest
from analytics.java import Java
from analytics.reports.catalog import NAMES
from tests.analytics.cluster import HOST, JAVA_OPTIONS, SPARK, Standalone, standalone
from tests.analytics.conftest import PASSWORD, ROOT, Exported
from tests.analytics.parquet import ordered, rows
from tests.analytics.past import Past
from tests.broker.ports import free_port

# Up to eight processes of Java on a machine that may have other work.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

PAGES = ("environment/", "executors/", "jobs/", "SQL/", "stages/")
ANSWERS = ("environment", "sql?details=true&planDescription=true&length=1000", "stages?details=true", "allexecutors")
# Its beginning stands for it: in JSON, HTML and a shell the rest is written in other ways.
SECRETS = (PASSWORD, PASSWORD[:6], quote(PASSWORD, safe="")[:8])
BY_COMMAND = (sys.executable, "-m", "mqbroker.embedded.cli", "export")
SUBMIT = str(ROOT / "analytics" / "submit.py")
BY_SUBMIT = (str(SPARK / "bin" / "spark-submit"),)


@pytest.fixture(scope="module")
def cluster(runtime: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """Running until the last test of this file."""
    with standalone(runtime, tmp_path_factory.mktemp("cluster")) as running:
        yield running


@dataclass(frozen=True)
class Seen:
    """A finished export: how it ended, and what other users of the machine and of Spark could see of it."""

    status: int
    out: str
    err: str
    shown: str


def settings(page: int, events: Path) -> list[str]:
    """Spark's settings on a command line: all of its traffic on the loopback interface, and nothing of it hidden."""
    given = {
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(page),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.sql.maxPlanStringLength": "1000000",
    }
    return [word for name, value in given.items() for word in ("--conf", f"{name}={value}")]


def export(
    cluster: Standalone, database: str, scratch: Path, to: str, program: Sequence[str], *words: str, own: Sequence[str]
) -> Seen:
    """An export to a place, stopped and looked at when its messages are written. `own` are words for Spark alone."""
    page, events = free_port(), scratch / "events"
    events.mkdir()
    command = [*program, "--master", cluster.master, *settings(page, events), *own, *words, "--to", to]
    environ = cluster.environ | {"DATABASE_URL": database, "MQBROKER_DATA_DIR": str(scratch / "data")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout is not None
        lines: list[str] = []
        for line in running.stdout:
            lines.append(line)
            if line.startswith("messages"):
                shown = looked_at(running.pid, page)
        out, err = running.communicate()
    log = "".join(path.read_text() for path in events.iterdir())
    assert "SparkListenerSQLExecutionStart" in log
    return Seen(running.returncode, "".join(lines) + out, err, shown + log)


def looked_at(pid: int, page: int) -> str:
    """The command lines of all processes and all pages of Spark's, while the program stands still."""
    tree = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    drivers = [process for process in tree if process.name().startswith("python")]
    assert drivers
    for driver in drivers:
        driver.suspend()
    lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    pages = f"http://{HOST}:{page}"
    [application] = json.loads(answer(f"{pages}/api/v1/applications"))
    texts = [answer(f"{pages}/{name}") for name in PAGES]
    texts += [answer(f"{pages}/api/v1/applications/{application['id']}/{name}") for name in ANSWERS]
    for driver in drivers:
        driver.resume()
    shown = "\n".join([*lines, *texts])
    # What was looked at is what there is to see.
    assert "CoarseGrainedExecutorBackend" in shown
    assert "spark.eventLog.enabled" in shown
    assert "planDescription" in shown
    return shown


def answer(url: str) -> str:
    """A page of this test's own Spark."""
    with urllib.request.urlopen(url, timeout=120) as opened:
        return str(opened.read().decode())


def require_equal(found: Path, local: Path) -> None:
    """Each table has the same rows in every column."""
    for table in manifest.TABLES:
        here, there = rows(found / table), rows(local / table)
        columns = sorted(there[0])
        assert ordered(here, *columns) == ordered(there, *columns)


def test_two_workers_write_the_rows_of_a_local_export_and_show_no_password(
    cluster: Standalone, reader: str, past: Past, exported: Exported, tmp_path: Path
) -> None:
    target = tmp_path / "export"

    seen = export(cluster, reader, tmp_path, str(target), BY_COMMAND, "--reader", "source", own=())

    assert (seen.status, seen.err) == (0, "")
    assert f"\nExported to {target} in " in seen.out
    require_equal(target, exported.folder)
    assert [secret for secret in SECRETS if secret in seen.shown] == []


def test_spark_submit_writes_the_same_rows_behind_a_url_and_shows_no_password(
    cluster: Standalone, reader: str, past: Past, exported: Exported, jdbc: Path, tmp_path: Path
) -> None:
    target = f"file://{tmp_path}/export"

    for_spark = ["--driver-java-options", JAVA_OPTIONS, "--jars", str(jdbc), SUBMIT]
    seen = export(cluster, reader, tmp_path, target, BY_SUBMIT, "--reader", "jdbc", own=for_spark)

    assert seen.status == 0, seen.err
    assert f"\nExported to {target} in " in seen.out
    assert "JDBCRelation" in seen.shown
    require_equal(tmp_path / "export", exported.folder)
    assert [secret for secret in SECRETS if secret in seen.shown] == []


def test_a_cluster_makes_the_reports_that_one_machine_makes(
    cluster: Standalone, past: Past, exported: Exported, tmp_path: Path
) -> None:
    events = tmp_path / "events"
    events.mkdir()
    where = ["--master", cluster.master, *settings(free_port(), events)]
    # Nothing of a database: the files are all that is read.
    environ = cluster.environ | {"DATABASE_URL": "postgresql://none@127.0.0.1:1/none"}
    report = (sys.executable, "-m", "mqbroker.embedded.cli", "report")
    commands = {
        "command": [*report, *where],
        "alone": report,
        "submitted": [*BY_SUBMIT, *where, "--driver-java-options", JAVA_OPTIONS, SUBMIT, "report"],
    }

    for name, command in commands.items():
        target = tmp_path / name
        words = [*command, str(exported.folder), "--to", str(target)]
        done = subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"Reported to {target} in " in done.stdout

    # Spark's logs of those that ran on the cluster.
    assert len(list(events.iterdir())) == len(commands) - 1
    for name in NAMES:
        alone = rows(tmp_path / "alone" / name)
        assert [rows(tmp_path / place / name) for place in commands] == [alone] * len(commands)
    assert rows(tmp_path / "alone" / "volumes") != []


def test_words_for_spark_behind_the_program_are_refused(cluster: Standalone, reader: str, tmp_path: Path) -> None:
    command = [*BY_SUBMIT, "--master", "local[1]", SUBMIT, "--to", str(tmp_path / "export"), "--master", "local[2]"]
    environ = cluster.environ | {"DATABASE_URL": reader}

    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)

    assert done.returncode == 1
    sentence = "spark-submit has started Spark: give --master and --conf to it, before submit.py."
    # Java hands on what Python writes, all of it to one stream.
    assert done.stdout == f"CommandError: {sentence}\n"
    assert os.listdir(tmp_path) == []
