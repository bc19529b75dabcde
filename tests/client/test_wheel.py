"""`pip install ./client` alone, in a fresh environment, gives a light client, its command and its license."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.commands import ROOT
from tests.broker.running import API_KEY, RunningBroker
from tests.client import pages

# What the base install brings, and nothing that a program would notice: no framework, no driver, no event loop.
BROUGHT = {"mqbroker-client", "urllib3", "standardwebhooks"}
HEAVY = {"aiohttp", "django", "sqlalchemy", "fastapi", "opentelemetry-api", "msgspec", "psycopg"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The `bin` folder of an environment with the client alone."""
    folder = tmp_path_factory.mktemp("installed")
    copy = shutil.copytree(ROOT / "client", folder / "client", ignore=shutil.ignore_patterns("__pycache__", "dist"))
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, str(copy)], check=True)
    yield folder / "venv" / "bin"
    shutil.rmtree(folder)


def said(command: list[str], folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MQBROKER_"))}
    keys = {"MQBROKER_API_KEY": API_KEY}
    done = subprocess.run(command, cwd=folder, env=environment | keys, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_install_is_light_and_has_its_license(installed: Path, tmp_path: Path) -> None:
    listing = "import importlib.metadata as m; print(*(d.name.lower() for d in m.distributions()))"
    files = "import importlib.metadata as m; print(*m.files('mqbroker-client'))"

    found = set(said([str(installed / "python"), "-c", listing], tmp_path).split())
    assert found >= BROUGHT
    assert found & HEAVY == set()
    packed = said([str(installed / "python"), "-c", files], tmp_path)
    assert "licenses/LICENSE" in packed
    assert "mqbroker_client/py.typed" in packed


def test_the_first_programs_of_the_page_run_on_it(installed: Path, broker: RunningBroker, tmp_path: Path) -> None:
    pages.write(tmp_path, pages.reader_of(broker) | pages.own_names())

    assert said([str(installed / "python"), "first.py"], tmp_path) == "b'order 1'\n"
    assert said([str(installed / "python"), "shop.py"], tmp_path) == "COMMIT True\n"


def test_its_command_is_mqb(installed: Path, broker: RunningBroker, tmp_path: Path) -> None:
    assert said([str(installed / "mqb"), "topics", "--url", broker.url], tmp_path) is not None
    assert said([str(installed / "mqb"), "--version"], tmp_path).count(".") == 2
