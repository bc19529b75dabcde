"""Names are wrapped in what was read of a request: it is refused as without a namespace, however it is written."""

import pytest

from tests.control.operators import Operator
from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/messages", '{"topic": "orders", "body": "x", "topic": "other"}'),
        ("POST", "/v1/messages", '{"topic": "orders", "topic": "other", "body": "%s"}' % ("x" * 600_000)),
        ("POST", "/v1/messages/batch", '{"topic": "orders", "messages": [{"body": "x"}], "topic": "other"}'),
        ("POST", "/v1/messages/batch", '{"messages": [{"topic": "orders", "body": "x", "topic": "other"}]}'),
        ("POST", "/v1/transactions", '{"topic": "orders", "body": "x", "producer_group": "a", "producer_group": "b"}'),
        ("POST", "/v1/bulk", '{"operations": [], "operations": [{"op": "send", "topic": "orders", "body": "x"}]}'),
        ("POST", "/v1/consumer-groups/coupons/receive", '{"topic": "orders", "topic": "other"}'),
        ("PUT", "/v1/consumer-groups/coupons/offsets", '{"topic": "orders", "to": "latest", "topic": "other"}'),
        ("PUT", "/v1/topics/orders", '{"queues": 1, "queues": 2}'),
        (
            "PUT",
            "/v1/subscriptions/mails",
            '{"group": "a", "topic": "orders", "url": "http://a", "group": "b"}',
        ),
    ],
)
def test_a_name_that_stands_twice_is_refused_in_a_namespace_too(
    operator: Operator, ours: Team, method: str, path: str, body: str
) -> None:
    header = {"X-Namespace": ours.namespace}
    plain = operator.call(method, path, body.encode())
    asked = operator.call(method, path, body.encode(), header)
    bound = ours.calls.call(method, path, body.encode())

    for answer in (plain, asked, bound):
        assert (answer.status, answer.problem["code"]) == (400, "bad_request")
        assert answer.problem["detail"].startswith("The meaning of the body is not clear: an object has the name '")


def test_names_in_a_query_are_wrapped_however_they_are_escaped(ours: Team) -> None:
    ours.sends()
    ours.begins()

    for query in ("topic", "to%70ic", "%74opic"):
        found = ours.calls.reads(f"/v1/messages?{query}={TOPIC}&limit=1")
        assert [one["message"]["topic"] for one in found["results"]] == [TOPIC], query
    for query in ("producer_group", "producer%5Fgroup"):
        listed = ours.calls.reads(f"/v1/transactions?{query}={PRODUCERS}")
        assert [one["producer_group"] for one in listed["results"]] == [PRODUCERS], query


def test_a_large_request_is_wrapped_too(ours: Team, theirs: Team) -> None:
    large = "x" * 100_000
    messages = [{"topic": TOPIC, "body": large} for _ in range(6)]
    ours.calls.make("/v1/messages/batch", messages=messages)
    ours.ends(ours.calls.make("/v1/transactions", producer_group=PRODUCERS, messages=messages).document)
    results = ours.calls.bulk(*[{"op": "send", **message} for message in messages])

    assert [one["topic"] for one in results] == [TOPIC] * 6
    found = 0
    while found < 18:
        received = ours.receives()
        found += len(received)
        ours.acks(received)
    assert theirs.receives(wait_seconds=0) == []


def test_many_handles_of_a_bulk_are_answered_each_and_too_many_refused(ours: Team) -> None:
    ours.receives(wait_seconds=0)
    ack = {"op": "ack", "group": CONSUMERS, "receipt_handles": ["unknown"] * 1000}
    send = {"op": "send", "topic": TOPIC, "body": "x"}

    results = ours.calls.bulk(send, *[ack] * 32, send)
    too_many = ours.calls.post("/v1/bulk", {"operations": [ack] * 33})

    assert [results[number]["topic"] for number in (0, 33)] == [TOPIC] * 2
    for acked in results[1:33]:
        assert [one["status"] for one in acked["results"]] == [410] * 1000
        assert ours.namespace not in acked["results"][-1]["detail"]
    assert too_many.problem["detail"] == "The acks of the bulk have 33000 receipt_handles: give 32000 at most."
