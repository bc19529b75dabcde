"""A Django project as a page makes it: its files, its commands, and the processes that it says to start."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes import launch
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.docs.pages import Page
from tests.docs.stories import BARE
from tests.docs.test_fastapi import asked

# A file, with words behind it or none, and its block.
FILE = re.compile(r"`((?:shop|orders)/\w+\.py)`[^\n]*:\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Project:
    """A project in a folder, for a broker; `more` are further variables of its environment."""

    def __init__(self, folder: Path, broker: RunningBroker, **more: str) -> None:
        self.folder = folder
        path = os.pathsep.join([str(folder), str(ROOT / "client")])
        own = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY, "PYTHONPATH": path}
        self.environment = BARE | own | more

    def runs(self, line: str) -> None:
        """A command that ends."""
        words = line.replace("django-admin", "python -m django").split()[1:]
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def starts(self, line: str) -> subprocess.Popen[bytes]:
        """A process that runs until its test ends."""
        words = launch.command("stay", signal.SIGTERM, sys.executable, *line.split()[1:])
        return subprocess.Popen(words, cwd=self.folder, env=self.environment)

    def make(self, page: Page, lender: Page | None = None) -> None:
        """Makes it by the first commands of a page, with the files of the page, and those that it names of a lender."""
        for line in page.blocks_of("text")[0].splitlines()[1:]:
            self.runs(line)
        files = _files(page)
        assert len(files) == len(page.blocks_of("python")), "a block without a file before it"
        own = {name for name, _ in files}
        files += [(name, block) for name, block in _files(lender) if name not in own and f"`{name}`" in page.text]
        for name, block in files:
            file = self.folder / name
            file.write_text((file.read_text() if name.endswith("settings.py") else "") + block)

    @contextmanager
    def running(self, page: Page, lender: Page | None = None) -> Iterator[str]:
        """Where it answers, made and started as the page says."""
        self.make(page, lender)
        [lines] = [block.splitlines() for block in page.blocks_of("sh")]
        port = free_port()
        for line in lines[:2]:
            self.runs(line)
        with ExitStack() as stack:
            for line in lines[2:]:
                process = stack.enter_context(self.starts(line.replace("9000", str(port))))
                stack.callback(process.wait, 30)
                stack.callback(process.terminate)
            yield f"http://127.0.0.1:{port}"


def _files(page: Page | None) -> list[tuple[str, str]]:
    return FILE.findall(page.text) if page else []


def coupons(url: str, count: int) -> list[int]:
    """The orders that have a coupon, once there are so many."""

    def given() -> list[int] | None:
        found = asked("GET", f"{url}/coupons")["orders"]
        return sorted(found) if len(found) >= count else None

    return eventually(given, within_seconds=60)


def order(url: str, item: str) -> Document:
    """An order of the project's; it is asked until it is up."""
    return eventually(partial(asked, "POST", f"{url}/orders/{item}"), within_seconds=60)
