"""A start waits as long as its web process lives and its database answers, and says what it waits for."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mqbroker.embedded import readiness
from mqbroker.embedded.readiness import Readiness
from mqbroker.embedded.servers import postgres
from tests.broker.ports import free_port

AWAY = "the database does not answer as it should (Unanswered)"
MIGRATIONS = "migrations are not applied: store.0001_tables; run `manage.py prepare`"


@dataclass
class Start:
    """A start of which each part is what a test makes it: what /readyz answers, the database, the time."""

    port: int
    status: int = 503
    reasons: list[str] = field(default_factory=list)
    deaths: int = 0
    database_answers: bool = True
    now: float = 0.0
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.readiness = Readiness(
            self.port, lambda: self.deaths, lambda: self.database_answers, self.said.append, lambda: self.now
        )

    def waits(self, seconds: int) -> bool:
        """Whether the start still waits after so many seconds more, of which each has a look."""
        for _ in range(seconds):
            self.now += 1.0
            if self.readiness.is_settled():
                return False
        return True


@pytest.fixture
def start() -> Iterator[Start]:
    """A start whose web process answers."""
    made = Start(free_port())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"reasons": made.reasons}).encode()
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with HTTPServer(("127.0.0.1", made.port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        server.shutdown()


@pytest.fixture
def mute() -> Start:
    """A start whose web process does not serve yet."""
    return Start(free_port())


def test_a_web_process_that_is_slow_to_serve_is_waited_for(mute: Start) -> None:
    assert mute.waits(600)

    assert len(mute.said) == 60
    assert mute.said[0].startswith("Waiting for the web process, which runs and does not answer yet (10 s so far")
    assert not mute.readiness.failure


def test_a_database_that_is_slow_and_answers_is_waited_for(start: Start) -> None:
    start.reasons = [AWAY]
    assert start.waits(300)
    assert start.said[-1].startswith(f"Waiting for /readyz, which answers 503: {AWAY} (300 s so far")

    start.status = 200
    assert not start.waits(1)
    assert start.readiness.is_ready


@pytest.mark.parametrize("serves", [True, False])
def test_a_database_that_is_silent_for_a_minute_ends_the_start(start: Start, mute: Start, serves: bool) -> None:
    chosen = start if serves else mute
    chosen.reasons, chosen.database_answers = [AWAY], False
    assert chosen.waits(readiness.SILENT_SECONDS)
    chosen.database_answers = True
    assert chosen.waits(readiness.SILENT_SECONDS)
    chosen.database_answers = False

    assert not chosen.waits(2 * readiness.SILENT_SECONDS)

    assert chosen.readiness.failure == "the database has not answered for 60 s"


def test_what_does_not_mend_itself_ends_the_start_with_its_reason(start: Start) -> None:
    start.reasons = [MIGRATIONS]
    assert start.waits(readiness.STATED_SECONDS)

    assert not start.waits(1)

    assert start.readiness.failure == f"/readyz answers 503: {MIGRATIONS}"


def test_a_web_process_that_ends_again_and_again_ends_the_start(mute: Start) -> None:
    mute.deaths = 2
    assert mute.waits(60)
    mute.deaths = 3

    assert not mute.waits(1)
    assert mute.readiness.failure == "it ended 3 times"


def test_a_server_answers_also_where_it_refuses(tmp_path: Path) -> None:
    server = postgres.Server(tmp_path)
    server.start()
    try:
        assert readiness.answers(server.url)
        assert readiness.answers(server.url.replace("/mqbroker", "/nothing"))
    finally:
        server.stop()
    assert not readiness.answers(server.url)
