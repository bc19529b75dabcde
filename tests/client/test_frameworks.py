"""The page's ways in Django, in FastAPI and by ASGI, from the broker's own call to the commit."""

import json
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import urllib3
from mqbroker_client import Consumer
from mqbroker_client.core.administration import new_secret

from mqbroker.embedded.processes import launch
from tests.broker.characters import bodies, name
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended
from tests.client import pages

# What begins a transaction whose end is never sent, with its local transaction or without; its id.
Lose = Callable[[bool], str]


@dataclass(frozen=True)
class Program:
    """What a reader of the page has made with one framework."""

    #: What starts the framework's own server.
    server: list[str]
    lose: Lose


@pytest.fixture
def reader(installed_with_extras: Path, tmp_path: Path) -> pages.Reader:
    """One who has installed all that the page names."""
    return pages.Reader(tmp_path, installed_with_extras)


def fastapi(reader: pages.Reader, port: int) -> Program:
    server = ["-m", "uvicorn", "app:app", "--port", str(port), "--log-level", "warning"]
    return Program(server, lambda paid: reader.begin_and_lose(paid=paid))


def asgi(reader: pages.Reader, port: int) -> Program:
    server = ["-m", "uvicorn", "checks:listener", "--port", str(port), "--log-level", "warning", "--lifespan", "off"]
    return Program(server, lambda paid: reader.begin_and_lose(paid=paid))


def django(reader: pages.Reader, port: int) -> Program:
    """A project as Django makes one, with all of its middleware, and the page's files in it."""
    folder = reader.folder
    added = (folder / "settings.py").read_text()
    site = folder / "site_of_the_reader"
    reader.run("-m", "django", "startproject", site.name, ".")
    with (site / "settings.py").open("a") as settings:
        settings.write(added)
    for file in ("views.py", "urls.py"):
        (folder / file).rename(site / file)
    reader.run("manage.py", "migrate", "-v", "0")
    code = (folder / "lose_in_django.py").read_text()

    def lose(paid: bool) -> str:
        return reader.run("manage.py", "shell", "-v", "0", "-c", code, **({"PAID": "1"} if paid else {})).strip()

    return Program(["manage.py", "runserver", f"127.0.0.1:{port}", "--noreload"], lose)


@contextmanager
def served(reader: pages.Reader, port: int, words: list[str], secret: str) -> Iterator[None]:
    with (
        (reader.folder / "server.log").open("w") as log,
        subprocess.Popen(
            launch.command("stay", signal.SIGTERM, str(reader.python), *words),
            cwd=reader.folder,
            env=reader.environment() | {"CHECK_SECRET": secret},
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
    broker: RunningBroker, reader: pages.Reader, framework: Callable[[pages.Reader, int], Program]
) -> None:
    port, secret, names = free_port(), new_secret(), pages.own_names()
    url = f"http://127.0.0.1:{port}/checks"
    reader.write(pages.reader_of(broker) | names | {"http://127.0.0.1:9000/checks": url})
    program = framework(reader, port)
    with served(reader, port, program.server, secret):
        for _ in range(2):
            reader.run("register.py", CHECK_SECRET=secret)
        paid, unpaid = (program.lose(was_paid) for was_paid in (True, False))
        found = [eventually(partial(ended, broker.wire(), lost)) for lost in (paid, unpaid)]
        unsigned = urllib3.request("POST", url, body=b"{}", retries=False)
        read = urllib3.request("GET", url, retries=False)

    assert [one["state"] for one in found] == ["COMMITTED", "ROLLED_BACK"]
    for one, answer in zip(found, ("COMMIT", "ROLLBACK"), strict=True):
        [check] = [event for event in one["history"] if event["event"] == "check"]
        assert (check["endpoint"], check["status"], check["answer"]) == (url, 200, answer)
    assert received(broker, names['"orders"']) == [b"order 3"]
    assert (unsigned.status, read.status) == (401, 405)


def test_the_view_of_the_page_sends_its_message(broker: RunningBroker, reader: pages.Reader) -> None:
    names = pages.own_names()
    reader.write(pages.reader_of(broker) | names)
    django(reader, free_port())

    assert reader.run("manage.py", "shell", "-v", "0", "-c", pages.SIGN_UP) == "200\n"
    [body] = received(broker, names['"sign-ups"'])
    assert json.loads(body)["user"] == 1


def test_the_route_of_the_page_sends_its_message(broker: RunningBroker, reader: pages.Reader) -> None:
    port, names = free_port(), pages.own_names()
    reader.write(pages.reader_of(broker) | names)
    with served(reader, port, fastapi(reader, port).server, new_secret()):
        made = urllib3.request("POST", f"http://127.0.0.1:{port}/orders/tea", retries=False)

    assert (made.status, made.json()) == (200, 1)
    assert received(broker, names['"orders"']) == [b'{"order":1,"item":"tea"}']


def received(broker: RunningBroker, topic: str) -> list[bytes]:
    return bodies(Consumer(broker.client(), name("coupons")).receive(topic.strip('"')))
