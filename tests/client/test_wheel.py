"""`pip install ./client` alone, in a fresh environment, gives a light client, its command, its license and its page."""

import subprocess
from pathlib import Path

from tests.broker.running import API_KEY, RunningBroker
from tests.client import pages
from tests.docs.pages import Page

# What the base install brings, and nothing that a program would notice: no framework, no driver, no event loop.
BROUGHT = {"mqbroker-client", "urllib3", "standardwebhooks"}
HEAVY = {"aiohttp", "django", "sqlalchemy", "fastapi", "opentelemetry-api", "msgspec", "psycopg"}


def said(python: Path, words: list[str], folder: Path) -> str:
    """What a program of the environment prints."""
    environment = pages.Reader(folder, python).environment() | {"MQBROKER_API_KEY": API_KEY}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_metadata(python: Path, expression: str, folder: Path) -> str:
    """What the environment knows of what is installed in it, `m` being importlib.metadata."""
    return said(python, [str(python), "-c", f"import importlib.metadata as m; print({expression})"], folder)


def test_the_install_is_light_and_has_its_license(installed: Path, tmp_path: Path) -> None:
    found = set(of_metadata(installed, "*(d.name.lower() for d in m.distributions())", tmp_path).split())
    assert found >= BROUGHT
    assert found & HEAVY == set()
    packed = of_metadata(installed, "*m.files('mqbroker-client')", tmp_path)
    assert "licenses/LICENSE" in packed
    assert "mqbroker_client/py.typed" in packed


def test_every_link_of_the_installed_page_leads_to_a_part_of_it(installed: Path, tmp_path: Path) -> None:
    text = of_metadata(installed, "m.metadata('mqbroker-client').get_payload()", tmp_path)
    installed_page = Page(tmp_path / "README.md", text)

    assert "# mqbroker-client" in text
    assert [link for link in installed_page.links if link.removeprefix("#") not in installed_page.anchors] == []


def test_its_command_is_mqb(installed: Path, broker: RunningBroker, tmp_path: Path) -> None:
    mqb = str(installed.with_name("mqb"))

    assert said(installed, [mqb, "topics", "--url", broker.url], tmp_path) is not None
    assert said(installed, [mqb, "--version"], tmp_path).count(".") == 2
