"""Limits of an ordered group: a queue waits while the value of its next message is at its limit."""

import json

import pytest

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.delivery.limited import LimitedGroup, bodies

SLOW = 0.001


@pytest.fixture(params=[None, "sharding_key"], ids=["by queue", "by turns"])
def fair_by(request: pytest.FixtureRequest) -> str | None:
    found: str | None = request.param
    return found


@pytest.fixture
def group(broker: RunningBroker, fair_by: str | None) -> LimitedGroup:
    """An ordered group without limits so far, and its topic of one queue."""
    group = LimitedGroup(broker)
    assert broker.wire().call("PUT", f"/v1/topics/{group.topic}", json.dumps({"queues": 1}).encode()).status == 201
    assert group.put(ordered=True, fair_by=fair_by).status == 201
    return group


def test_of_a_key_at_most_the_limit_is_in_flight_in_its_order(group: LimitedGroup) -> None:
    group.limit(by="sharding_key", in_flight=2)
    group.send("a", 5)

    found: list[str] = []
    for count in (2, 2, 1, 0):
        entries = group.receive()
        assert len(entries) == count
        assert group.receive() == []
        found += bodies(entries)
        if entries:
            group.settle("ack", entries)

    assert found == [f"a {number}" for number in range(5)]


def test_a_failed_message_counts_again_when_it_is_handed_out_again(group: LimitedGroup) -> None:
    group.limit(by="sharding_key", in_flight=1)
    group.send("a", 2)
    first = group.receive()

    group.settle("nack", first, delay_seconds=0)

    again = eventually(group.receive)
    assert bodies(again) == bodies(first) == ["a 0"]
    assert group.receive() == []
    group.settle("ack", again)
    assert bodies(group.receive()) == ["a 1"]


def test_a_rate_lets_a_key_on_by_and_by(group: LimitedGroup, fair_by: str | None) -> None:
    group.limit(by="sharding_key", per_second=SLOW, burst=2)
    group.send("noisy", 4)
    group.send("quiet", 1)

    first = group.receive()
    group.settle("ack", first)
    # Without turns the queue waits for its next message.
    assert bodies(first) == ["noisy 0", "noisy 1"] if fair_by is None else ["noisy 0", "noisy 1", "quiet 0"]
    assert group.receive() == []
    group.time_passes(1 / SLOW)
    second = group.receive()
    assert bodies(second) == ["noisy 2"]
    group.settle("ack", second)
    group.time_passes(2 / SLOW)
    rest = ["noisy 3", "quiet 0"] if fair_by is None else ["noisy 3"]
    assert bodies(group.receive()) == rest


def test_a_limit_of_the_group_counts_all_queues(broker: RunningBroker, fair_by: str | None) -> None:
    group = LimitedGroup(broker)
    group.put(ordered=True, fair_by=fair_by)
    group.limit(by="group", in_flight=3)
    for key in range(20):
        group.send(f"key-{key}")

    found = [group.receive(2) for _ in range(4)]

    assert [len(entries) for entries in found] == [2, 1, 0, 0]
    group.settle("ack", found[0])
    assert len(group.receive()) == 2
