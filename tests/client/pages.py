"""The programs that the client's page shows, written and run as its reader would."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mqbroker.embedded.commands import ROOT
from tests.broker.characters import name
from tests.broker.running import API_KEY, RunningBroker
from tests.docs.pages import page

README = page("client/README.md")
#: The commands of the page that install the client, in their order.
INSTALLS = re.findall(r"\bpip install [^`\n]+", README.text)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A half, a local transaction if it was paid, and no end.
LOSE = """
import sys
from shop import barrier, book, producer

transaction = producer.begin("orders", b"order 3")
if "paid" in sys.argv:
    with book() as local:
        local.execute("INSERT INTO paid VALUES (4200)")
        barrier.insert_commit(local, transaction.transaction_id)
print(transaction.transaction_id)
"""
# The same in a Django project.
LOSE_IN_DJANGO = """
import os
from django.db import connection, transaction
from mqbroker_client.contrib.django.apps import config

begun = config().producer.begin("orders", b"order 3")
if "PAID" in os.environ:
    with transaction.atomic():
        config().barrier.insert_commit(connection, begun.transaction_id)
print(begun.transaction_id)
"""
SIGN_UP = """
from django.test import RequestFactory
from site_of_the_reader.views import sign_up

print(sign_up(RequestFactory().post("/sign-up", {"name": "ada"})).status_code)
"""


def programs(text: str) -> dict[str, str]:
    """Each Python block of a page by the file that the prose names last before it."""
    parts = BLOCK.split(text)
    names = [re.findall(r"`(\w+\.py)`", prose)[-1] for prose in parts[:-1:2]]
    assert len(set(names)) == len(names), f"two blocks have one name: {names}"
    return dict(zip(names, parts[1::2], strict=True))


def reader_of(broker: RunningBroker) -> dict[str, str]:
    """What a reader of the page replaces."""
    return {"http://127.0.0.1:8000": broker.url, "mq_…": API_KEY}


def own_names() -> dict[str, str]:
    """Names for a broker that other tests use too."""
    return {f'"{stem}"': f'"{name(stem)}"' for stem in ("orders", "sign-ups", "my-shop", "my-coupons")}


@dataclass(frozen=True)
class Reader:
    """A reader who follows the page in a folder, with the Python of an environment in which the client is installed."""

    folder: Path
    python: Path

    def write(self, replaced: Mapping[str, str]) -> None:
        """Every program of the page, as a file."""
        for file, text in (programs(README.text) | {"lose.py": LOSE, "lose_in_django.py": LOSE_IN_DJANGO}).items():
            (self.folder / file).write_text(with_own(text, replaced), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Nothing of the broker's, and nothing of what this machine's user has configured."""
        return environment() | {"HOME": str(self.folder), "PYTHONPATH": ""}

    def run(self, *words: str, **variables: str) -> str:
        """What a program prints."""
        done = subprocess.run(
            [self.python, *words],
            cwd=self.folder,
            env=self.environment() | variables,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def begin_and_lose(self, *, paid: bool) -> str:
        """The id of a transaction of the page's shop whose end is never sent."""
        return self.run("lose.py", *(["paid"] if paid else [])).strip()


def environment() -> dict[str, str]:
    """Of a program beside the client's sources: nothing of the broker's and its tests'."""
    strange = ("MQBROKER_", "DJANGO_", "PYTHON")
    return {name: value for name, value in os.environ.items() if not name.startswith(strange)} | {
        "PYTHONPATH": str(ROOT / "client")
    }


def with_own(text: str, replaced: Mapping[str, str]) -> str:
    """The text with what a reader puts in place of the page's address, key and names."""
    for written, here in replaced.items():
        text = text.replace(written, here)
    return text
