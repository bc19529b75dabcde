"""Limits of a namespace: what all its keys send together, its topics, and its undecided transactions."""

import time

from tests.broker.polling import at_this_load, eventually
from tests.broker.running import RunningBroker
from tests.control.operators import Operator
from tests.namespaces.teams import TOPIC, Team


def test_the_keys_of_a_namespace_share_its_messages_a_second(broker: RunningBroker, operator: Operator) -> None:
    ours = Team.of(broker, operator, "ours", messages_per_second=1)
    beside = Team.within(broker, operator, ours.namespace)

    together = [{"body": "x"} for _ in range(100)]
    assert ours.calls.make("/v1/messages/batch", topic=TOPIC, messages=together).status == 201

    refused = beside.calls.make("/v1/messages", topic=TOPIC, body="x")
    assert (refused.status, refused.problem["code"]) == (429, "rate_limited")
    assert refused.problem["detail"].endswith(f"raise messages_per_second at /v1/namespaces/{ours.namespace}.")
    path = f"/v1/namespaces/{ours.namespace}"
    assert eventually(lambda: operator.reads(path)["refused"] == 1)
    assert operator.put(path, messages_per_second=None).status == 200
    assert beside.calls.make("/v1/messages", topic=TOPIC, body="x").status == 201


def test_the_bytes_of_a_namespace_are_limited(broker: RunningBroker, operator: Operator) -> None:
    ours = Team.of(broker, operator, "ours", bytes_per_second=1000)

    assert ours.calls.make("/v1/messages", topic=TOPIC, body="x" * 5000).status == 201
    assert ours.calls.make("/v1/messages", topic=TOPIC, body="x").status == 429


def test_a_namespace_has_as_many_topics_as_it_may(broker: RunningBroker, operator: Operator) -> None:
    ours = Team.of(broker, operator, "ours", max_topics=2)
    ours.sends()
    ours.receives()
    assert ours.calls.put("/v1/topics/second").status == 201

    by_hand, at_first_use = (
        ours.calls.put("/v1/topics/third"),
        ours.calls.make("/v1/messages", topic="fourth", body="x"),
    )

    for refused in (by_hand, at_first_use):
        assert (refused.status, refused.problem["code"]) == (429, "rate_limited")
        assert "has 2 topics, its limit" in refused.problem["detail"]
    assert ours.calls.put("/v1/topics/second", reserved_hours=5).status == 200
    assert ours.calls.delete("/v1/topics/second").status == 204
    assert ours.calls.put("/v1/topics/third").status == 201


def test_the_producer_groups_of_a_namespace_share_its_undecided_transactions(
    broker: RunningBroker, operator: Operator
) -> None:
    ours = Team.of(broker, operator, "ours", max_undecided=2)
    beside = Team.of(broker, operator, "beside", max_undecided=2)
    begun = [ours.begins(producer_group=group) for group in ("one", "two")]

    half = {"producer_group": "three", **ours.message}
    refused = ours.calls.make("/v1/transactions", **half)

    assert (refused.status, refused.problem["code"]) == (429, "rate_limited")
    assert "has 2 undecided transactions, its limit" in refused.problem["detail"]
    beside.begins()
    end = {"producer_group": "one", "state": "ROLLBACK"}
    ours.calls.make(f"/v1/transactions/{begun[0]['transaction_id']}/end", **end)
    assert ours.calls.make("/v1/transactions", **half).status == 201


def test_a_deep_document_takes_no_time(broker: RunningBroker, operator: Operator) -> None:
    ours = Team.of(broker, operator, "ours")
    deep = b"[" * 2_000_000 + b"]" * 2_000_000
    began = time.monotonic()

    assert ours.calls.call("POST", "/v1/messages", deep).status in (400, 413, 422)
    assert time.monotonic() - began < at_this_load(2)
