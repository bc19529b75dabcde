"""What docs/from-rocketmq.md claims and no other test shows."""

import re
from datetime import datetime, timedelta

import pytest
from mqbroker_client import Consumer, Producer

from mqbroker.embedded.commands import ROOT
from tests.broker.polling import eventually
from tests.broker.running import QUICK
from tests.broker.tellings import told
from tests.broker.wire import Wire

PAGE = (ROOT / "docs" / "from-rocketmq.md").read_text(encoding="utf-8")


def of_line(first: str) -> list[str]:
    """The properties in the first cell of the page's line that begins with one of them."""
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| `{first}`")]
    return re.findall(r"`(\w+)`", line.split("|")[1])


def test_a_message_goes_to_the_queue_that_its_producer_names(producer: Producer, orders: str) -> None:
    # By turns they would go to all queues.
    sent = [producer.send(orders, f"order {number}", queue_id=queue) for number, queue in enumerate((2, 2, 0, 2, 3))]

    assert [(one.queue_id, one.queue_offset) for one in sent] == [(2, 0), (2, 1), (0, 0), (2, 2), (3, 0)]


def test_a_delivery_has_the_properties_that_its_producer_gave_and_no_others(
    producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", properties={"region": "eu"})

    [delivery] = consumer.receive(orders)

    assert of_line("CONSUME_START_TIME") == ["CONSUME_START_TIME", "POP_CK", "1ST_POP_TIME"]
    assert delivery.message.properties == {"region": "eu"}
    assert delivery.receipt_handle


@pytest.mark.parametrize("name", of_line("WAIT"))
def test_a_property_of_rocketmqs_own_is_refused(wire: Wire, orders: str, name: str) -> None:
    refused = wire.post("/v1/messages", {"topic": orders, "body": "order 1", "properties": {name: "1"}})

    assert (refused.status, refused.problem["code"]) == (422, "message_illegal")
    assert f"The property {name} is reserved by the broker" in refused.problem["detail"]


def test_the_next_check_is_asked_an_interval_after_the_last_one(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = str(producer.begin(orders, b"order 1").transaction_id)
    path = f"/v1/producer-groups/{producer.group}/checks/receive"
    interval = timedelta(seconds=int(QUICK["MQBROKER_TRANSACTION_CHECK_INTERVAL_SECONDS"]))

    eventually(lambda: wire.post(path, {"max_transactions": 1, "wait_seconds": 0}).document["transactions"])

    shown = told(wire, transaction)
    asked_at = next(step["at"] for step in shown["history"] if step["event"] == "check")
    waited = datetime.fromisoformat(shown["next_check_at"]) - datetime.fromisoformat(asked_at)
    assert abs(waited - interval) < timedelta(milliseconds=500)
