"""A standalone cluster of Spark on the loopback interface: a master and two workers, each with an executor's room."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from analytics.java import Java
from tests.broker.polling import eventually
from tests.broker.ports import free_port

HOST = "127.0.0.1"
SPARK = Path(pyspark.__file__).parent
SECONDS_TO_START = 120
WORKERS = 2
# The quick compiler only: none of these processes lives long enough for the other one to pay.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@dataclass(frozen=True)
class Standalone:
    """A running cluster: its master's URL, and the environment of programs beside it."""

    master: str
    environ: dict[str, str]


@contextmanager
def standalone(runtime: Java, folder: Path) -> Iterator[Standalone]:
    """A cluster until the end of the block. Its machines have no checkout of the broker on their paths."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_CONF_DIR")}
    environ |= {"JAVA_HOME": str(runtime.home(folder)), "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": HOST}
    environ |= {"SPARK_DAEMON_MEMORY": "256m", "HOME": str(folder), "PYSPARK_PYTHON": sys.executable}
    port, page = free_port(), free_port()
    master = f"spark://{HOST}:{port}"
    common = ["--host", HOST, "--webui-port"]
    with ExitStack() as stack:
        stack.enter_context(_daemon(environ, folder, "master.Master", *common, str(page), "--port", str(port)))
        room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")]
        for _ in range(WORKERS):
            stack.enter_context(_daemon(environ, folder, "worker.Worker", *common, "0", *room, master))
        eventually(lambda: _has_its_workers(f"http://{HOST}:{page}/json/"), SECONDS_TO_START)
        yield Standalone(master, environ)


@contextmanager
def _daemon(environ: dict[str, str], folder: Path, name: str, *words: str) -> Iterator[None]:
    command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
    # The executors of a worker have its environment.
    environ = environ | {"JDK_JAVA_OPTIONS": JAVA_OPTIONS}
    with (folder / f"{name}.log").open("ab") as log:
        daemon = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log)
    try:
        yield
    finally:
        # A worker ends its executors.
        daemon.terminate()
        daemon.wait()


def _has_its_workers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:  # of this test's own master
            return bool(json.load(answer)["aliveworkers"] == WORKERS)
    except (OSError, json.JSONDecodeError):
        # Until all of its pages are up the master answers each path with the first.
        return False
