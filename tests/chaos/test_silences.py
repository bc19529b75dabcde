"""A database falls silent as a process starts, or under its work: neither waits for an answer for long."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import databases
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer

# Words of the first question of a start, what the server is like, and of the second, whether the secrets can be read.
QUESTIONS = {"the server": b"transaction_read_only", "the secrets": b"previous_secret"}
# Twice 4 s for an answer; then a start as ever, and a request or a task that finds no database.
WITHIN_SECONDS = 30


@pytest.fixture
def proxy(prepared: str) -> Iterator[DatabaseProxy]:
    with databases.copied(prepared) as database_url, DatabaseProxy(database_url) as proxy:
        yield proxy


@pytest.fixture
def silenced(proxy: DatabaseProxy, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker of which nothing runs yet, on a database behind the proxy."""
    running = RunningBroker(tmp_path, proxy.url, os.environ["REDIS_URL"])
    yield running
    proxy.swallow(packets=False)
    running.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_worker_begins_to_work_while_the_answer_is_due(
    silenced: RunningBroker, proxy: DatabaseProxy, question: str
) -> None:
    proxy.swallows_from = QUESTIONS[question]
    silenced.worker.start()
    eventually(lambda: proxy.swallows_from is None, at_this_load(WITHIN_SECONDS))
    silenced.beat.start()

    eventually(lambda: "could not work task=actions.run" in silenced.log(), at_this_load(WITHIN_SECONDS))

    assert "Traceback" not in silenced.log()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_web_process_answers_while_the_answer_is_due(
    silenced: RunningBroker, proxy: DatabaseProxy, question: str
) -> None:
    [web] = silenced.webs
    proxy.swallows_from = QUESTIONS[question]
    web.start()
    eventually(lambda: proxy.swallows_from is None, at_this_load(WITHIN_SECONDS))

    answer = eventually(lambda: answer_of(silenced), at_this_load(WITHIN_SECONDS))

    assert (answer.status, answer.problem["code"]) == (503, "system_busy")
    assert "Traceback" not in silenced.log()


def test_a_worker_ends_while_an_answer_is_due(silenced: RunningBroker, proxy: DatabaseProxy) -> None:
    """An action's, which is asked for on Django's connection; it gives up after 20 s."""
    proxy.swallows_from = b'FROM "action"'
    silenced.worker.start()
    silenced.beat.start()
    eventually(lambda: proxy.swallows_from is None, at_this_load(WITHIN_SECONDS))

    silenced.worker.ask_to_stop()

    eventually(lambda: not silenced.worker.is_running(), at_this_load(WITHIN_SECONDS))


def answer_of(broker: RunningBroker) -> Answer | None:
    """What a read is answered; None where nothing listens yet."""
    try:
        return broker.wire().get("/v1/topics")
    except OSError:
        return None
