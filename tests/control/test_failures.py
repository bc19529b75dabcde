"""What the log says of a request that fails: a trace where the broker failed, a line where the caller did."""

import os
import re
from pathlib import Path

import psycopg

from tests.broker import databases
from tests.broker.running import API_KEY, RunningBroker
from tests.control.conftest import SETTINGS
from tests.control.operators import Operator

MESSAGE_ID = "0190f7c2-0000-7000-8000-000000000000"


def test_a_failure_is_found_in_the_log_by_the_id_of_its_answer(prepared: str, tmp_path: Path) -> None:
    redis_url = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
    with databases.copied(prepared) as url, RunningBroker(tmp_path, url, redis_url, SETTINGS, tasks=False) as running:
        operator = Operator(running.url, API_KEY)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE topic RENAME TO topic_away; ALTER TABLE commit_log RENAME TO log_away")

        django, data_plane = (
            operator.call("GET", path, headers={"X-Request-Id": name})
            for path, name in (("/v1/topics", "order-42"), (f"/v1/messages/{MESSAGE_ID}", "order-43"))
        )

        for answer, name in ((django, "order-42"), (data_plane, "order-43")):
            assert (answer.status, answer.headers["x-request-id"]) == (500, name)
        # As text by Django's handler, as a field by the data plane's.
        for said in (r"\(request order-42\)\nTraceback", r"request_id=order-43\nTraceback"):
            assert re.search(said, running.log())


def test_a_stranger_whose_host_header_is_refused_is_one_line_of_the_log(broker: RunningBroker) -> None:
    before = broker.webs[0].log.stat().st_size

    answer = broker.wire().call("GET", "/v1/topics", headers={"Host": "no such host"})

    said = broker.webs[0].log.read_bytes()[before:].decode()
    assert (answer.status, said.count("Invalid HTTP_HOST header: 'no such host'")) == (400, 1)
    assert "Traceback" not in said
