"""The page of limits has the values of the code, and a broker answers beyond each limit as the page says."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Wire
from tests.docs import limits
from tests.docs.limits import LIMITS, Limit

BY_NAME = {limit.what: limit for section in LIMITS.values() for limit in section}
Beyond = Callable[[Wire, int], Answer]


def test_the_page_is_that_of_the_code() -> None:
    expected = limits.page()

    assert limits.PAGE.read_text(encoding="utf-8") == expected, "run python -m tests.docs.limits"


def sends(**fields: Any) -> Beyond:
    """A send of one message; a field that is a function gets the limit."""

    def ask(wire: Wire, limit: int) -> Answer:
        given = {name: value(limit) if callable(value) else value for name, value in fields.items()}
        return wire.post("/v1/messages", {"topic": "limited", "body": "x", **given})

    return ask


def receives(**fields: Any) -> Beyond:
    """A receive; a field that is a function gets the limit."""

    def ask(wire: Wire, limit: int) -> Answer:
        given = {name: value(limit) if callable(value) else value for name, value in fields.items()}
        return wire.post("/v1/consumer-groups/limited/receive", {"topic": "limited", **given})

    return ask


def posts(path: str, field: str, one: Any, **more: Any) -> Beyond:
    """A request with one element more than the limit in a field."""
    return lambda wire, limit: wire.post(path, {field: [one] * (limit + 1), **more})


def puts(path: str, document: Callable[[int], dict[str, Any]]) -> Beyond:
    """A change of the configuration to a document, which is made from the limit."""
    return lambda wire, limit: wire.call("PUT", path, json.dumps(document(limit)).encode(), JSON)


def undecided(wire: Wire, _: int) -> Answer:
    """The second transaction of a producer group that may have one undecided transaction."""
    puts("/v1/producer-groups/limited", lambda _: {"max_undecided": 1})(wire, 1)
    begin = {"producer_group": "limited", "messages": [MESSAGE]}
    wire.post("/v1/transactions", begin)
    return wire.post("/v1/transactions", begin)


JSON = {"Content-Type": "application/json"}
MESSAGE = {"topic": "limited", "body": "x"}
ACK = "/v1/consumer-groups/limited/ack"
# Their limits in a broker of the tests are smaller than by default.
SMALL = {"invisible time, at least", "undecided transactions of a producer group"}
BEYOND: dict[str, Beyond] = {
    "body of a message; bodies of a batch": sends(body=lambda limit: "x" * (limit + 1)),
    "properties, tags and keys": sends(properties=lambda limit: {"a": "x" * limit}),
    "properties of a message": sends(properties=lambda limit: {f"p{number}": "" for number in range(limit + 1)}),
    "sharding key": sends(sharding_key=lambda limit: "x" * (limit + 1)),
    "retries that a message asks for": sends(max_reconsume_times=lambda limit: limit + 1),
    "delay, or time until `deliver_at`": sends(delay_seconds=lambda limit: limit + 1),
    "messages of a batch": posts("/v1/messages/batch", "messages", MESSAGE),
    "messages of a transaction": posts("/v1/transactions", "messages", MESSAGE, producer_group="limited"),
    "operations of a bulk": posts("/v1/bulk", "operations", {"send": MESSAGE}),
    "undecided transactions of a producer group": undecided,
    "name of a topic or group": sends(topic=lambda limit: "x" * (limit + 1)),
    "queues of a topic": puts("/v1/topics/limited", lambda limit: {"queues": limit + 1}),
    "messages of a receive": receives(max_messages=lambda limit: limit + 1),
    "wait of a receive": receives(wait_seconds=lambda limit: limit + 1),
    "invisible time, at least": receives(invisible_seconds=0),
    "invisible time, at most": receives(invisible_seconds=lambda limit: limit + 1),
    "receipt handles of an ack": posts(ACK, "receipt_handles", "none"),
    "messages sent with an ack": posts(ACK, "messages", MESSAGE, receipt_handles=["none"]),
    "messages of a pull by offset": lambda wire, limit: wire.get(
        f"/v1/topics/limited/queues/0/messages?offset=0&max={limit + 1}"
    ),
    "`in_flight` of a group's `limits`": puts(
        "/v1/consumer-groups/limited", lambda limit: {"limits": {"by": "group", "in_flight": limit + 1}}
    ),
    "`values` of a group's `limits`": puts(
        "/v1/consumer-groups/limited",
        lambda limit: {"limits": {"by": "sharding_key", "values": {str(value): {} for value in range(limit + 1)}}},
    ),
    "filter": receives(filter=lambda limit: "x" * (limit + 1)),
    "scopes of a key": posts("/v1/api-keys", "scopes", "manage", name="limited"),
    "message of a schedule": puts(
        "/v1/schedules/limited",
        lambda limit: {"cron": "* * * * *", "message": {"topic": "limited", "body": "x" * limit}},
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_beyond_a_limit_the_broker_answers_as_the_page_says(broker: RunningBroker, name: str) -> None:
    limit: Limit = BY_NAME[name]
    broker.wire().call("PUT", "/v1/consumer-groups/limited", b"{}", JSON)

    answer = BEYOND[name](broker.wire(), limit.value)

    assert f"{answer.status} `{answer.problem['code']}`" == limit.beyond, answer.document
    # The refusal names the limit, so it is not a refusal of another field.
    named = answer.problem["detail"].replace(",", "")
    assert name in SMALL or re.search(rf"\b{limit.value}\b", named), named
