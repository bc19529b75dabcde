"""A half message that breaks a rule leaves nothing behind: neither its group nor its topics."""

from typing import Any
from uuid import UUID

import pytest

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Wire

TWICE = str(UUID(int=7))
LONG = "x" * 3_000_000
READ_ONLY = {"topic": "read only", "body": "order"}


def messages(*given: Document) -> Document:
    """A transaction of several messages."""
    return {"messages": [{"topic": "new", "body": "order", **fields} for fields in given]}


# What is refused and how; "new" stands for a topic that does not exist, "read only" for one that takes no messages.
REFUSED: dict[str, tuple[Document, str]] = {
    "a check_url that the group has not registered": ({"check_url": "http://127.0.0.1:1/"}, "message_illegal"),
    "a queue that the topic would not have": ({"queue_id": 99}, "queue_illegal"),
    "a delay that is too long": ({"delay_seconds": 1e9}, "delay_illegal"),
    "a topic that takes no messages": (READ_ONLY, "topic_forbidden"),
    "a topic that takes no messages, behind a new one": (messages({}, READ_ONLY), "topic_forbidden"),
    "a topic of the broker's own, behind a new one": (messages({}, {"topic": "%DLQ%a"}), "topic_forbidden"),
    "two messages of one id": (messages({"message_id": TWICE}, {"message_id": TWICE}), "message_id_reused"),
    "two bodies that are too long together": (messages({"body": LONG}, {"body": LONG}), "message_too_large"),
}


@pytest.fixture(scope="module")
def holder(broker: RunningBroker) -> Wire:
    """A caller that may produce, and whose groups are its own."""
    wire = broker.wire()
    made = wire.post("/v1/api-keys", {"name": characters.name("shop"), "scopes": ["produce:*"]})
    return Wire(wire.url, made.document["key"])


@pytest.fixture(scope="module")
def read_only(broker: RunningBroker) -> str:
    """A topic that takes no messages."""
    topic = characters.name("archive")
    assert broker.wire().call("PUT", f"/v1/topics/{topic}", b'{"permission": "r"}').status == 201
    return topic


@pytest.mark.parametrize("bulk", [False, True], ids=["alone", "in a bulk"])
@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_half_message_makes_neither_its_group_nor_a_topic(
    wire: Wire, holder: Wire, read_only: str, orders: str, why: str, bulk: bool
) -> None:
    given, code = REFUSED[why]
    names = {"new": orders, "read only": read_only}
    group = characters.name("payments")
    half = named({"topic": "new", "body": "order", **given}, names)
    half |= {"producer_group": group}
    if "messages" in half:
        half = {"producer_group": group, "messages": half["messages"]}

    for caller in (wire, holder):
        refused = caller.bulk({"op": "half", **half})[0] if bulk else caller.post("/v1/transactions", half).problem
        assert refused["code"] == code

    assert wire.get(f"/v1/producer-groups/{group}").status == 404
    assert wire.get(f"/v1/topics/{orders}").status == 404


def named(fields: Any, names: dict[str, str]) -> Any:
    """The fields with the real names of topics."""
    if isinstance(fields, dict):
        return {field: named(value, names) for field, value in fields.items()}
    return [named(one, names) for one in fields] if isinstance(fields, list) else names.get(str(fields), fields)
