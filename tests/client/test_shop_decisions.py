"""The shop reads from the broker how each transaction was ended, and waits for the undecided ones."""

import threading
import time

from mqbroker_client import Broker, Producer
from mqbroker_client.ids import uuid7

from examples.shop import decisions
from tests.client.answers import MOMENT, problem
from tests.client.servers import Answer, scripted

PREPARED = {"event": "prepared", "at": MOMENT}
ASKED = {"event": "check", "at": MOMENT, "answer": "UNKNOWN"}
UNKNOWN = {"event": "end", "at": MOMENT, "state": "UNKNOWN", "by": "producer"}
BY_PRODUCER = {"event": "end", "at": MOMENT, "state": "ROLLBACK", "by": "producer"}
BY_CHECK = {"event": "end", "at": MOMENT, "state": "COMMIT", "by": "check"}


def transaction(state: str, *history: dict[str, str]) -> Answer:
    return Answer(200, {"state": state, "history": [PREPARED, *history]})


def test_an_order_counts_for_the_side_that_ended_it_and_not_for_the_one_that_was_checked() -> None:
    order_ids = [uuid7() for _ in range(4)]
    with scripted(
        transaction("ROLLED_BACK", ASKED, BY_PRODUCER),
        transaction("COMMITTED", ASKED, UNKNOWN, BY_CHECK),
        transaction("PREPARED", ASKED),
        problem(404, "transaction_not_found", "Never stored."),
        transaction("COMMITTED", BY_CHECK),
    ) as server:
        decided = decisions.wait_for_all(
            Producer(Broker(server.url, "key"), "shop"), order_ids, time.monotonic() + 20, threading.Event()
        )

    assert [decided[order_id] for order_id in order_ids] == ["producer", "check", "check", "none"]


def test_what_stays_undecided_is_missing() -> None:
    order_id = uuid7()
    with scripted(transaction("PREPARED")) as server:
        decided = decisions.wait_for_all(
            Producer(Broker(server.url, "key"), "shop"), [order_id], time.monotonic(), threading.Event()
        )

    assert decided == {}
