"""The client as its user has it: installed from its folder into an environment of its own."""

import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tests.client import pages

# The pip of this environment installs into another one: making one there takes longer than the install.
PIP = ["pip", "--python", "{}", "--no-cache-dir", "--quiet", "install"]
UV = ["uv", "pip", "install", "--python", "{}", "--no-cache", "--quiet"]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of an environment in which `pip install ./client` was the only command."""
    yield from environment_after(tmp_path_factory.mktemp("installed"), [PIP], "./client")


@pytest.fixture(scope="session")
def installed_with_extras(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of an environment in which everything was installed that the commands of the page install.

    Spark alone is left to `./mq test --all`: its build takes ten times the CPU of all the rest, and no program here
    imports Spark.
    """
    # By one command: each of them builds the client anew, in an environment that is made for that. pip takes ten times
    # as long, and may know an index that uv does not know.
    installs = [install for install in pages.INSTALLS if "MQ_LONG" in os.environ or "[spark]" not in install]
    packages = [word for install in installs for word in shlex.split(install)[2:]]
    yield from environment_after(tmp_path_factory.mktemp("installed"), [UV, PIP], *packages)


@pytest.fixture
def nothing_logged() -> Iterator[None]:
    """For texts that are no UTF-8: what is logged goes as UTF-8 from one process of the tests to another."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def environment_after(folder: Path, installers: list[list[str]], *packages: str) -> Iterator[Path]:
    """The Python of a new environment after the first of these installers that can install the packages.

    It is started beside the folder `client`, with an empty HOME.
    """
    shutil.copytree(ROOT / "client", folder / "client", ignore=shutil.ignore_patterns("__pycache__", "dist"))
    (folder / "home").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # What is imported is compiled then, a tenth of what is installed.
    environment |= {"HOME": str(folder / "home"), "PIP_NO_COMPILE": "1"}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    for installer in installers:
        words = [sys.executable, "-m", *(str(python) if word == "{}" else word for word in installer), *packages]
        if subprocess.run(words, cwd=folder, env=environment).returncode == 0:
            break
    else:
        pytest.fail(f"{' '.join(packages)} could not be installed")
    yield python
    shutil.rmtree(folder)
