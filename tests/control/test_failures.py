"""A request that fails unexpectedly: its caller has an id, and the log has the same one beside the traceback."""

import os
import re
from pathlib import Path

import psycopg
import pytest

from tests.broker import databases
from tests.broker.running import API_KEY, RunningBroker
from tests.control.conftest import SETTINGS
from tests.control.operators import Operator


@pytest.mark.parametrize(
    ("path", "table"), [("/v1/topics", "topic"), ("/v1/messages/0190f7c2-0000-7000-8000-000000000000", "commit_log")]
)
def test_a_failure_is_found_in_the_log_by_the_id_of_its_answer(
    prepared: str, tmp_path: Path, path: str, table: str
) -> None:
    redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    with databases.copied(prepared) as url:
        running = RunningBroker(tmp_path, url, redis_url, SETTINGS, tasks=False)
        with running:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"ALTER TABLE {table} RENAME TO {table}_away")

            answer = Operator(running.url, API_KEY).call("GET", path, headers={"X-Request-Id": "order-42"})

            assert (answer.status, answer.headers["x-request-id"]) == (500, "order-42")
            # As text by Django's handler, as a field by the data plane's.
            assert re.search(r"(\(request order-42\)|request_id=order-42)\nTraceback", running.log())
