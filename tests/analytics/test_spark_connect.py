"""The data source `mqbroker` in sessions of Spark Connect, and the example of a declarative pipeline."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from analytics import java, session
from analytics.java import Java
from tests.analytics.conftest import ROOT
from tests.analytics.parquet import rows
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection

status = pytest.importorskip("grpc_status", reason="Spark Connect needs pyspark[connect]: pip install grpcio-status")
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
SPARK = Path(pyspark.__file__).parent
SETTINGS = "-Dspark.sql.shuffle.partitions=1 -Dspark.ui.enabled=false"

# A program of Spark Connect: the server is a process of its own, which this one reaches by gRPC only.
PROGRAM = """
from pyspark.sql import SparkSession
from analytics.stream import register

spark = SparkSession.builder.remote("local[1]").getOrCreate()
register(spark)
reader = spark.read.format("mqbroker").option("topic", "orders")
print("read", reader.load().count())
query = spark.readStream.format("mqbroker").option("topic", "orders").load().writeStream.format("memory")
running = query.queryName("streamed").trigger(availableNow=True).start()
running.awaitTermination()
print("streamed", spark.table("streamed").count())
spark.stop()
"""


def environment(runtime: Java, url: str, folder: Path) -> dict[str, str]:
    """The environment of a program that starts a Spark on this machine, as the page on the export says."""
    named = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return named | {
        "DATABASE_URL": url,
        "JAVA_HOME": str(runtime.home(folder)),
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(status.__file__).parents[1])]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(java.NO_SETTINGS),
        # Of Spark's own start as well. With its 200 partitions an aggregate of 20 rows has as many tasks.
        "JAVA_TOOL_OPTIONS": f"{session.BRIEF_OPTIONS} {java.class_options(runtime)} {SETTINGS}",
    }


# The pipeline below has such a session, which streams.
@pytest.mark.long
def test_a_session_of_spark_connect_reads_and_streams_the_broker(
    runtime: Java, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    fill(writer, 30)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment(runtime, busy_database, tmp_path),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line] == ["read 20", "streamed 20"]


def test_the_example_of_a_pipeline_makes_a_cleaned_table_and_an_aggregate_for_each_hour(
    runtime: Java, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    fill(writer, 30)
    project = Path(shutil.copytree(ROOT / "examples/pipeline", tmp_path / "pipeline"))
    spec = project / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/mqbroker-pipeline", (tmp_path / "storage").as_uri()))

    done = subprocess.run(
        [str(SPARK / "bin/spark-pipelines"), "run"],
        cwd=project,
        env=environment(runtime, busy_database, tmp_path),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    cleaned, hours = (rows(project / "spark-warehouse" / table) for table in ("orders", "orders_by_hour"))
    assert (len(cleaned), {type(row["body"]) for row in cleaned}) == (20, {str})
    assert Counter(row["entered_at"].replace(minute=0, second=0, microsecond=0) for row in cleaned) == {
        row["hour"]: row["count"] for row in hours
    }


def test_the_example_of_a_pipeline_is_short() -> None:
    lines = [
        line
        for path in Path(ROOT, "examples/pipeline").iterdir()
        if path.is_file()
        for line in path.read_text().splitlines()
    ]

    assert len([line for line in lines if line.strip() and not line.startswith('"""')]) <= 15
