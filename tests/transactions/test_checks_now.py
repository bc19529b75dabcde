"""A check that an operator asks for is made by a worker's tick, not by the web process that was asked."""

import os
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import Producer

from tests.broker import cells
from tests.broker.characters import register
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.broker.tellings import ended, told

# The poller of a web process leaves to workers what has been due for less.
LATE_SECONDS = 3.0


@pytest.mark.timeout(60)
def test_a_web_process_starts_no_checks_for_the_one_that_an_operator_asks_for(
    prepared: str, tmp_path: Path, endpoint: ProducerEndpoint
) -> None:
    endpoint.replies(states("COMMIT"))
    with (
        cells.installation(prepared) as url,
        RunningBroker(tmp_path, url, os.environ["REDIS_URL"], QUICK, tasks=False) as web,
    ):
        wire, producer = web.wire(), Producer(web.client(), "shop")
        register(web, "shop", endpoint.url)
        pending = producer.begin("orders", b"order 1", check_immunity_seconds=3600).transaction_id

        answer = wire.post(f"/v1/transactions/{pending}/check", {})
        eventually(partial(ended, wire, pending))

        assert answer.status == 202
        [asked] = [event for event in told(wire, pending)["history"] if event["event"] == "check"]
        due_at = datetime.fromisoformat(answer.document["next_check_at"])
        assert (datetime.fromisoformat(asked["at"]) - due_at).total_seconds() >= LATE_SECONDS
