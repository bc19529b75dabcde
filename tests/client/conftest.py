"""The client as its user has it: installed from its folder into an environment of its own."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.commands import ROOT
from tests.client import pages


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of an environment in which `pip install ./client` was the only command."""
    yield from environment_after(tmp_path_factory.mktemp("installed"), "pip install ./client")


@pytest.fixture(scope="session")
def installed_with_extras(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Python of an environment in which everything was installed that the commands of the page install."""
    # By one command: each of them builds the client anew, in an environment that pip makes for that.
    everything = [words for install in pages.INSTALLS for words in install.split()[2:]]
    yield from environment_after(tmp_path_factory.mktemp("installed"), f"pip install {' '.join(everything)}")


@pytest.fixture
def nothing_logged() -> Iterator[None]:
    """For texts that are no UTF-8: what is logged goes as UTF-8 from one process of the tests to another."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def environment_after(folder: Path, install: str) -> Iterator[Path]:
    """The Python of a new environment after this command, given beside the folder `client` and with an empty HOME."""
    shutil.copytree(ROOT / "client", folder / "client", ignore=shutil.ignore_patterns("__pycache__", "dist"))
    (folder / "home").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    # What is imported is compiled then, a tenth of what is installed.
    environment |= {"HOME": str(folder / "home"), "PIP_NO_COMPILE": "1"}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    # The pip of this environment installs into that one: making one there takes longer than the install.
    pip = f"{sys.executable} -m pip --python {python} --no-cache-dir --quiet"
    subprocess.run(install.replace("pip", pip, 1), shell=True, cwd=folder, env=environment, check=True)
    yield python
    shutil.rmtree(folder)
