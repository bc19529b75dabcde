"""Programs of Spark outside of the checkout and of an activated environment: what the page says is all they need."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mqbroker_client import Consumer

from tests.analytics.cluster import SPARK
from tests.analytics.conftest import ROOT
from tests.analytics.past import Past
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty

PAGE = (ROOT / "docs" / "analytics.md").read_text(encoding="utf-8")
SOURCE = PAGE.partition("## In a Spark of yours")[2].partition("\n## ")[0]


def environ(database: str) -> dict[str, str]:
    """The variables of a shell without this environment's Python."""
    ours = ("PYSPARK_PYTHON", "PYTHONPATH", "VIRTUAL_ENV")
    left = {name: value for name, value in os.environ.items() if name not in ours}
    path = os.pathsep.join(part for part in left["PATH"].split(os.pathsep) if part != str(Path(sys.executable).parent))
    return left | {"PATH": path, "DATABASE_URL": database}


@pytest.mark.long
@pytest.mark.spark
def test_the_lines_of_the_page_run_in_a_spark_of_the_users_own(
    database: str, past: Past, broker: RunningBroker, consumer: Consumer, tmp_path: Path
) -> None:
    lines = "\n".join(re.findall(r"```python\n(.*?)```", SOURCE, re.DOTALL))
    program = tmp_path / "program.py"
    program.write_text(
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.master('local[1]').getOrCreate()\n"
        f"{lines}\nprint('entries:', entries.count(), committed.isStreaming)\n"
    )

    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env=environ(database) | {"PYTHONPATH": str(ROOT), "MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert f"entries: {len(past.entries)} True" in done.stdout
    assert re.search(r"\|\s+100\|", done.stdout)
    sent = [json.loads(delivery.body) for delivery in received_until_empty(consumer, "prices")]
    assert sorted(each["product"] for each in sent) == ["7", "8"]


@pytest.mark.spark
@pytest.mark.long
def test_spark_submit_exports_from_any_folder(database: str, past: Past, tmp_path: Path) -> None:
    submit = [str(SPARK / "bin" / "spark-submit"), "--master", "local[1]", str(ROOT / "analytics" / "submit.py")]

    done = subprocess.run(
        [*submit, "--to", str(tmp_path / "export")],
        cwd=tmp_path,
        env=environ(database) | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(SPARK)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "export" / "export.json").exists()
