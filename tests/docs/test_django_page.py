"""The project of the page on Django, made as it says: an order, its message and its coupon are there, or none is."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from embedded.commands import ROOT
from embedded.folder import free_port
from embedded.processes import launch
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.docs.pages import page
from tests.docs.test_fastapi import asked

PAGE = page("docs/django.md")
FILES = ("shop/settings.py", "orders/models.py", "orders/views.py", "orders/handlers.py", "shop/urls.py")


class Project:
    """The project in a folder."""

    def __init__(self, folder: Path, broker: RunningBroker) -> None:
        self.folder = folder
        path = os.pathsep.join([str(folder), str(ROOT / "client")])
        own = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY, "PYTHONPATH": path}
        theirs = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        self.environment = theirs | own

    def runs(self, line: str) -> None:
        """A command that ends."""
        words = line.replace("django-admin", "python -m django").split()[1:]
        subprocess.run([sys.executable, *words], cwd=self.folder, env=self.environment, check=True, capture_output=True)

    def starts(self, line: str) -> subprocess.Popen[bytes]:
        """A process that runs until its test ends."""
        words = launch.command("stay", signal.SIGTERM, sys.executable, *line.split()[1:])
        return subprocess.Popen(words, cwd=self.folder, env=self.environment)


@pytest.fixture
def url(broker: RunningBroker, tmp_path: Path) -> Iterator[str]:
    """Where the project answers, made and started as the page says."""
    project, port = Project(tmp_path, broker), free_port()
    made, _, _ = PAGE.blocks_of("text")[:3] if len(PAGE.blocks_of("text")) > 2 else (*PAGE.blocks_of("text"), "")
    for line in made.splitlines()[1:]:
        project.runs(line)
    for name, block in zip(FILES, PAGE.blocks_of("python"), strict=True):
        file = tmp_path / name
        file.write_text((file.read_text() if name.endswith("settings.py") else "") + block)
    [lines] = [block.splitlines() for block in PAGE.blocks_of("sh")]
    for line in lines[:2]:
        project.runs(line)
    with ExitStack() as stack:
        for line in lines[2:]:
            process = stack.enter_context(project.starts(line.replace("9000", str(port))))
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
        yield f"http://127.0.0.1:{port}"


def test_an_order_of_the_project_is_followed_by_its_coupon_and_a_rolled_back_one_by_none(url: str) -> None:
    first = eventually(partial(asked, "POST", f"{url}/orders/tea"), within_seconds=60)
    with pytest.raises(OSError, match="500"):
        asked("POST", f"{url}/orders/nothing")
    second = asked("POST", f"{url}/orders/coffee")

    def given() -> list[int] | None:
        found = asked("GET", f"{url}/coupons")["orders"]
        return sorted(found) if len(found) >= 2 else None

    assert eventually(given, within_seconds=60) == [first["order"], second["order"]]


def test_the_page_names_each_file_before_its_block() -> None:
    assert re.findall(r"`((?:shop|orders)/\w+\.py)`:\n\n```python", PAGE.text) == list(FILES)
