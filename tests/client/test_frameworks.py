"""The page's ways in Django, in FastAPI and by ASGI, from the broker's own call to the commit."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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

# What begins a transaction whose end is never sent, with its local transaction or without; its id.
Lose = Callable[[bool], str]


@dataclass(frozen=True)
class Reader:
    """A reader who has followed the page in a folder, for one framework."""

    folder: Path
    #: What starts the framework's own server.
    server: list[str]
    lose: Lose


def fastapi(folder: Path, port: int) -> Reader:
    server = ["-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]
    return Reader(folder, server, lambda paid: pages.begin_and_lose(folder, paid=paid))


def asgi(folder: Path, port: int) -> Reader:
    server = ["-m", "uvicorn", "checks:listener", "--port", str(port), "--log-level", "warning", "--lifespan", "off"]
    return Reader(folder, server, lambda paid: pages.begin_and_lose(folder, paid=paid))


def django(folder: Path, port: int) -> Reader:
    """A project as Django makes one, with all of its middleware, and the page's files in it."""
    added = (folder / "settings.py").read_text()
    site = folder / "site_of_the_reader"
    pages.run(folder, "-m", "django", "startproject", site.name, ".")
    with (site / "settings.py").open("a") as settings:
        settings.write(added)
    for file in ("views.py", "urls.py"):
        (folder / file).rename(site / file)
    pages.run(folder, "manage.py", "migrate", "-v", "0")
    code = (folder / "lose_in_django.py").read_text()

    def lose(paid: bool) -> str:
        return pages.run(folder, "manage.py", "shell", "-v", "0", "-c", code, **({"PAID": "1"} if paid else {})).strip()

    return Reader(folder, ["manage.py", "runserver", f"127.0.0.1:{port}", "--noreload"], lose)


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


@pytest.mark.parametrize("framework", [fastapi, asgi, django])
def test_a_check_goes_through_the_framework_to_the_barrier_and_decides(
    broker: RunningBroker, tmp_path: Path, framework: Callable[[Path, int], Reader]
) -> None:
    port, secret, names = free_port(), new_secret(), pages.own_names()
    url = f"http://127.0.0.1:{port}/checks"
    pages.write(tmp_path, pages.reader_of(broker) | names | {"http://127.0.0.1:9000/checks": url})
    reader = framework(tmp_path, port)
    with served(tmp_path, port, reader.server, secret):
        for _ in range(2):
            pages.run(tmp_path, "register.py", CHECK_SECRET=secret)
        paid, unpaid = (reader.lose(was_paid) for was_paid in (True, False))
        found = [eventually(partial(ended, broker.wire(), lost)) for lost in (paid, unpaid)]
        unsigned = urllib3.request("POST", url, body=b"{}", retries=False)
        read = urllib3.request("GET", url, retries=False)

    assert [one["state"] for one in found] == ["COMMITTED", "ROLLED_BACK"]
    for one, answer in zip(found, ("COMMIT", "ROLLBACK"), strict=True):
        [check] = [event for event in one["history"] if event["event"] == "check"]
        assert (check["endpoint"], check["status"], check["answer"]) == (url, 200, answer)
    assert received(broker, names['"orders"']) == [b"order 3"]
    assert (unsigned.status, read.status) == (401, 405)


def test_the_view_of_the_page_sends_its_message(broker: RunningBroker, tmp_path: Path) -> None:
    names = pages.own_names()
    pages.write(tmp_path, pages.reader_of(broker) | names)
    django(tmp_path, free_port())

    assert pages.run(tmp_path, "manage.py", "shell", "-v", "0", "-c", pages.SIGN_UP) == "200\n"
    [body] = received(broker, names['"sign-ups"'])
    assert json.loads(body)["user"] == 1


def test_the_route_of_the_page_sends_its_message(broker: RunningBroker, tmp_path: Path) -> None:
    port, names = free_port(), pages.own_names()
    pages.write(tmp_path, pages.reader_of(broker) | names)
    with served(tmp_path, port, fastapi(tmp_path, port).server, new_secret()):
        made = urllib3.request("POST", f"http://127.0.0.1:{port}/orders/tea", retries=False)

    assert (made.status, made.json()) == (200, 1)
    assert received(broker, names['"orders"']) == [b'{"order":1,"item":"tea"}']


def received(broker: RunningBroker, topic: str) -> list[bytes]:
    return bodies(Consumer(broker.client(), name("coupons")).receive(topic.strip('"')))
