"""The page's ways to answer checks in Django and in FastAPI, from the broker's own call to the commit."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import urllib3
from mqbroker_client import Consumer
from mqbroker_client.administration import new_secret

from embedded.folder import free_port
from tests.broker.characters import bodies, name
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended
from tests.client import pages

# What starts a framework's own server on a port, in the folder of the page's programs.
Framework = Callable[[Path, int], list[str]]


def fastapi(folder: Path, port: int) -> list[str]:
    return ["-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]


def django(folder: Path, port: int) -> list[str]:
    """A project as Django makes one, with all of its middleware, and the page's URLs in it."""
    pages.run(folder, "-m", "django", "startproject", "site_of_the_reader", ".")
    (folder / "urls.py").rename(folder / "site_of_the_reader" / "urls.py")
    return ["manage.py", "runserver", f"127.0.0.1:{port}", "--noreload"]


@contextmanager
def served(folder: Path, port: int, words: list[str], secret: str) -> Iterator[None]:
    with (
        (folder / "server.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env=pages.environment() | {"CHECK_SECRET": secret},
            stdout=log,
            stderr=log,
        ) as server,
    ):
        try:
            eventually(partial(listens, port))
            yield
        finally:
            server.terminate()


def listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("framework", [fastapi, django])
def test_a_check_goes_through_the_framework_to_the_books_and_decides(
    broker: RunningBroker, tmp_path: Path, framework: Framework
) -> None:
    port, secret, names = free_port(), new_secret(), pages.own_names()
    url = f"http://127.0.0.1:{port}/checks"
    pages.write(tmp_path, pages.reader_of(broker) | names | {"http://127.0.0.1:9000/checks": url})
    with served(tmp_path, port, framework(tmp_path, port), secret):
        for _ in range(2):
            pages.run(tmp_path, "register.py", CHECK_SECRET=secret)
        paid, unpaid = (pages.begin_and_lose(tmp_path, paid=was_paid) for was_paid in (True, False))
        found = [eventually(partial(ended, broker.wire(), lost)) for lost in (paid, unpaid)]
        unsigned = urllib3.request("POST", url, body=b"{}", retries=False)
        read = urllib3.request("GET", url, retries=False)

    assert [one["state"] for one in found] == ["COMMITTED", "ROLLED_BACK"]
    for one, answer in zip(found, ("COMMIT", "ROLLBACK"), strict=True):
        [check] = [event for event in one["history"] if event["event"] == "check"]
        assert (check["endpoint"], check["status"], check["answer"]) == (url, 200, answer)
    consumer = Consumer(broker.client(), name("coupons"))
    assert bodies(consumer.receive(names['"orders"'].strip('"'))) == [b"order 3"]
    assert (unsigned.status, read.status) == (401, 405)
