"""`./mq bench export`: each reader beside what Arrow does without Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analytics.conftest import ROOT
from tests.broker import forks

BENCH = (sys.executable, "-m", "mqbroker.embedded.cli", "bench", "export")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_each_reader_is_measured_beside_the_limit(jdbc: Path, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    short = ("--case", "readers", "--messages", "300", "--rounds", "1", "--json", str(file))

    done = subprocess.run(
        [*BENCH, *short], cwd=ROOT, env=os.environ | {"MQBROKER_JDBC_JAR": str(jdbc)}, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    [report] = json.loads(file.read_text())
    assert report["facts"]["messages"] == "300"
    figures = report["figures"]
    assert list(figures) == ["limit", "source", "jdbc"]
    assert (figures["limit"]["messages_of_limit"], figures["limit"]["tables_of_limit"]) == (1, 1)
    for reader in ("source", "jdbc"):
        assert min(figures[reader][name] for name in ("session_s", "messages_s", "java_cpu_s", "postgres_cpu_s")) > 0


def test_an_unknown_case_is_refused_with_the_known_ones() -> None:
    done = forks.run([*BENCH, "--case", "writers"], os.environ)

    assert done.returncode == 2
    [known] = [line for line in done.stderr.splitlines() if "No case has writers in its name: there are " in line]
    assert "readers; senders at 500/s; senders at 2000/s" in known
