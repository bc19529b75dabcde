"""The log: every line of every process is an event with fields, as text or as JSON, and holds nothing secret."""

import ast
import io
import json
import logging
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
import structlog

from mqbroker import logs
from mqbroker.embedded.commands import python
from mqbroker.embedded.processes import identity
from mqbroker.embedded.processes.child import Child
from mqbroker.embedded.servers.valkey import Server as Valkey
from tests.broker import databases, forks
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.house.sources import APPS, Source, modules

LISTENERS = """
    FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'mqbroker-listener'
"""
LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
BODY = "a body (1).\nof two lines"
SECRET_FIELDS = {"key", "api_key", "secret", "password", "token", "authorization", "body", "properties", "headers"}
TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error|critical) [\w.]+: \S.*")


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """A Redis that may be killed."""
    server = Valkey(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


def lines_of_a_bad_day(prepared: str, folder: Path, redis: Valkey, form: str) -> dict[str, list[str]]:
    """The log of each process of a broker that lost its Redis, the connection that listens, and a web process."""
    redis.start()
    with databases.copied(prepared) as url:
        broker = RunningBroker(folder, url, redis.url, {**QUICK, "MQBROKER_LOG": form}, processes=2)
        redis.kill()
        [web] = broker.webs
        words = {web: "listening", broker.worker: "celery", broker.beat: "celery"}
        with broker:
            with psycopg.connect(url, user="postgres", autocommit=True) as connection:
                # Each of the two web processes begins to listen some time after it begins to serve.
                eventually(lambda: connection.execute(f"SELECT count(*) {LISTENERS}").fetchone() == (2,))
                connection.execute(f"SELECT pg_terminate_backend(pid) {LISTENERS}")
            for child, word in words.items():
                eventually(partial(has_logged, child, word), within_seconds=60)
            one, _ = set(identity.session_members(web.pid)) - {web.pid}
            os.kill(one, signal.SIGKILL)
            eventually(lambda: "died" in web.log.read_text(), within_seconds=30)
        return {child.name.partition("-")[0]: child.log.read_text().splitlines() for child in broker.children}


def has_logged(child: Child, word: str) -> bool:
    return word in child.log.read_text()


@pytest.mark.chaos
def test_in_json_every_line_of_every_process_is_an_event(prepared: str, tmp_path: Path, redis: Valkey) -> None:
    logged = lines_of_a_bad_day(prepared, tmp_path, redis, "json")

    events = {name: [json.loads(line) for line in lines] for name, lines in logged.items()}
    assert all(list(event)[:4] == ["at", "level", "logger", "event"] for each in events.values() for event in each)
    loggers = {name: {event["logger"].partition(".")[0] for event in each} for name, each in events.items()}
    assert {"store", "mqbroker"} <= loggers["web"]
    assert "celery" in loggers["worker"]
    assert "celery" in loggers["beat"]


@pytest.mark.chaos
def test_in_text_every_line_says_when_how_grave_and_where_from(prepared: str, tmp_path: Path, redis: Valkey) -> None:
    logged = lines_of_a_bad_day(prepared, tmp_path, redis, "text")

    assert set(logged) == {"web", "worker", "beat"}
    assert [line for lines in logged.values() for line in lines if not TEXT.fullmatch(line)] == []
    assert any(" not listening for other processes problem=" in line for line in logged["web"])


def test_the_events_of_every_room_are_logged() -> None:
    assert logs.APPS == APPS


def test_a_form_that_is_none_is_refused() -> None:
    words = python("-m", "mqbroker.embedded.cli", "settings")

    done = forks.run(words, os.environ | {"MQBROKER_LOG": "xml"})

    assert (done.returncode, done.stderr) == (
        1,
        "mq: MQBROKER_LOG='xml' cannot be used (none of the choices): give text or json.\n",
    )


@pytest.mark.parametrize("form", logs.FORMS)
def test_a_row_that_breaks_a_constraint_is_left_out_of_the_log(form: str) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.formatter(form))
    logger = logging.getLogger(f"store.{form}")
    logger.addHandler(handler)
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TEMP TABLE message (id int CHECK (id > 0), body text, topic text)")
        try:
            connection.execute("INSERT INTO message VALUES (0, %s, 'orders')", [BODY])
        except psycopg.Error:
            structlog.stdlib.get_logger(logger.name).exception("a request failed", topic="orders")

    assert "CheckViolation" in written.getvalue()
    assert "a request failed" in written.getvalue()
    assert [line for line in BODY.splitlines() if line in written.getvalue()] == []


def test_what_is_logged_is_an_event_with_fields_and_none_of_them_secret() -> None:
    calls = [(module, call) for module in modules(*APPS) for call in log_calls(module)]

    assert len(calls) > 10
    assert [f"{module}:{call.lineno}" for module, call in calls if not is_event(call)] == []


def log_calls(module: Source) -> Iterator[ast.Call]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            of = node.func.value
            if isinstance(of, ast.Name) and of.id == "logger":
                yield node


def is_event(call: ast.Call) -> bool:
    """One sentence that is always the same, so that it can be searched for and counted; the rest are fields."""
    is_constant = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and "%" not in str(call.args[0].value)
    return is_constant and SECRET_FIELDS.isdisjoint(keyword.arg or "" for keyword in call.keywords)


@pytest.mark.parametrize(
    "text",
    ['logger.info("a send of %s", topic)', 'logger.info(f"a send of {topic}")', 'logger.info("a send", body=body)'],
)
def test_a_log_that_is_no_event_is_found(text: str) -> None:
    [call] = log_calls(Source(Path("store/log.py"), text))

    assert not is_event(call)
