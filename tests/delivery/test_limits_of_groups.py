"""Limits of a group: of each value at most so many messages are in flight, and are handed out in a second."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.delivery.limited import LimitedGroup, bodies, values

SLOW = 0.001


@pytest.fixture
def group(broker: RunningBroker) -> LimitedGroup:
    """A group without limits so far, and its topic."""
    return LimitedGroup(broker)


@pytest.mark.parametrize("fair_by", [None, "property:tenant"], ids=["by limits", "fair too"])
def test_of_a_value_at_most_the_limit_is_in_flight_and_other_values_are_handed_out(
    group: LimitedGroup, fair_by: str | None
) -> None:
    group.put(fair_by=fair_by)
    group.limit(in_flight=2)
    group.send("noisy", 300)
    group.send("quiet", 1)
    group.send("", 3)

    found = [entry for _ in range(3) for entry in group.receive()]

    assert values(found) == ["", "", "noisy", "noisy", "quiet"]
    noisy = [entry for entry in found if entry["message"]["body"].startswith("noisy")]
    assert bodies(noisy) == ["noisy 0", "noisy 1"]
    group.settle("ack", noisy[:1])
    assert bodies(group.receive()) == ["noisy 2"]
    assert group.receive() == []


@pytest.mark.parametrize(("end", "left"), [("ack", 1), ("return", 2), ("nack", 2), ("expiry", 2)])
def test_a_delivery_counts_until_it_ends_and_its_retry_counts_again(group: LimitedGroup, end: str, left: int) -> None:
    group.limit(in_flight=1)
    group.send("acme", 2)
    found = group.receive()
    assert len(found) == 1

    if end == "expiry":
        group.deliveries_expire()
    else:
        group.settle(end, found)

    received: list[str] = []
    for _ in range(left):
        entries = eventually(group.receive)
        assert group.receive() == []
        group.settle("ack", entries)
        received += bodies(entries)
    assert sorted(received) == ["acme 0", "acme 1"][-left:]
    assert group.receive() == []


def test_an_extension_keeps_a_delivery_in_flight(group: LimitedGroup) -> None:
    group.limit(in_flight=1)
    group.send("acme", 2)
    entries = group.receive()

    group.settle("extend", entries, invisible_seconds=60)

    assert group.receive() == []


def test_a_burst_is_handed_out_at_once_and_then_the_rate(group: LimitedGroup) -> None:
    group.limit(per_second=SLOW, burst=3)
    group.send("acme", 10)
    group.send("quiet", 1)

    assert values(group.receive()) == ["acme", "acme", "acme", "quiet"]
    assert group.receive() == []
    group.time_passes(2 / SLOW)
    assert values(group.receive()) == ["acme", "acme"]
    group.time_passes(1_000_000)
    assert values(group.receive()) == ["acme"] * 3


def test_without_a_burst_the_messages_of_a_second_are_handed_out_at_once(group: LimitedGroup) -> None:
    group.limit(per_second=2.5, values={"slow": {"per_second": SLOW}})
    group.send("acme", 10)
    group.send("slow", 10)

    assert values(group.receive(8)) == ["acme"] * 3 + ["slow"]


@pytest.mark.parametrize("fair_by", [None, "property:tenant"], ids=["in the order of queues", "by turns"])
def test_a_limit_of_the_group_counts_all_messages_of_a_topic(group: LimitedGroup, fair_by: str | None) -> None:
    group.put(fair_by=fair_by)
    group.limit(by="group", in_flight=3)
    for value in ("a", "b", "c"):
        group.send(value, 2)

    found = group.receive(2) + group.receive()

    assert len(found) == 3
    assert fair_by is None or values(found) == ["a", "b", "c"]
    group.settle("ack", found)
    assert len(group.receive()) == 3


def test_values_may_have_limits_of_their_own_and_none(group: LimitedGroup) -> None:
    own = {"large": {}, 'a "b" \\': {"in_flight": 2}, "stopped": {"in_flight": 0}, "": {"in_flight": 1}}
    group.limit(in_flight=1, values=own)
    for value in ("large", 'a "b" \\', "stopped", "", "other"):
        group.send(value, 4)

    assert values(group.receive()) == ["", *['a "b" \\'] * 2, *["large"] * 4, "other"]


def test_a_limit_by_sharding_key_counts_sharding_keys(group: LimitedGroup) -> None:
    group.limit(by="sharding_key", in_flight=1)
    group.send("a", 2)
    group.send("b", 2)

    assert values(group.receive()) == ["a", "b"]


def test_a_change_of_limits_counts_what_is_in_flight(group: LimitedGroup) -> None:
    group.limit(in_flight=3)
    group.send("acme", 10)
    assert len(group.receive(2)) == 2

    group.limit(in_flight=2)
    assert group.receive() == []
    group.limit(in_flight=5)
    assert len(group.receive()) == 3
    group.limit()
    assert len(group.receive()) == 5


def test_limits_end_when_no_message_waits(group: LimitedGroup) -> None:
    group.limit(in_flight=1)
    group.send("acme", 2)
    entries = group.receive()

    assert "wait for their turns: reset the offsets" in group.put(limits=None).problem["detail"]
    assert "cannot be by sharding_key" in group.put(limits={"by": "sharding_key"}).problem["detail"]
    group.settle("ack", entries)
    group.settle("ack", group.receive())
    assert group.put(limits=None).status == 200
    group.send("acme", 5)
    assert len(group.receive()) == 5


@pytest.mark.parametrize("tags", [None, "*"])
def test_consumers_of_two_web_processes_keep_to_the_limit_together(group: LimitedGroup, tags: str | None) -> None:
    group.limit(in_flight=3)
    for number in range(5):
        group.send(f"tenant-{number}", 20)

    with ThreadPoolExecutor(8) as pool:
        found = [
            entry
            for entries in pool.map(lambda web: group.receive(7, web, filter=tags), [0, 1] * 6)
            for entry in entries
        ]

    assert values(found) == sorted(f"tenant-{number}" for number in range(5) for _ in range(3))


def test_an_ack_wakes_a_consumer_of_another_web_process(group: LimitedGroup) -> None:
    group.limit(in_flight=1)
    group.send("acme", 2)
    first = group.receive()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(partial(group.receive, 1, 1, wait_seconds=20))
        began = time.monotonic()
        group.settle("ack", first)
        assert bodies(waiting.result()) == ["acme 1"]
    assert time.monotonic() - began < 10


def test_a_waiting_consumer_gets_a_message_when_the_rate_lets_it(group: LimitedGroup) -> None:
    group.limit(per_second=2, burst=1)
    group.send("acme", 4)

    times: list[float] = []
    for _ in range(4):
        assert len(group.receive(wait_seconds=20)) == 1
        times.append(time.monotonic())

    assert times[3] - times[0] > 1.5 - 0.2
    assert times[3] - times[0] < 10


def test_what_waits_for_its_limit_is_lag(group: LimitedGroup) -> None:
    group.limit(in_flight=1)
    group.send("acme", 10)
    group.receive()

    path = f"/v1/consumer-groups/{group.name}/offsets?topic={group.topic}"
    assert group.broker.wire().get(path).document["lag"] == 9


REFUSED: dict[str, tuple[Document, str]] = {
    "no source": ({"limits": {"by": "tenant"}}, "by is 'tenant': give sharding_key, property:NAME or group."),
    "missing": ({"limits": {"in_flight": 1}}, "by is missing"),
    "unknown": ({"limits": {"by": "group", "per_hour": 1}}, "There is no field per_hour here"),
    "unknown of a value": (
        {"limits": {"by": "sharding_key", "values": {"a": {"by": "b"}}}},
        "There is no field A value of values.by here",
    ),
    "negative": ({"limits": {"by": "group", "in_flight": -1}}, "in_flight cannot be read: give a whole number >= 0"),
    "no rate": ({"limits": {"by": "group", "per_second": 0}}, "per_second cannot be read: give a number >= 0.001"),
    "burst alone": ({"limits": {"by": "group", "burst": 5}}, "burst needs per_second"),
    "slow burst": ({"limits": {"by": "group", "burst": 5000, "per_second": 0.01}}, "takes 500000 s"),
    "values of the group": ({"limits": {"by": "group", "values": {"a": {}}}}, "leave values out"),
    "many values": ({"limits": {"by": "sharding_key", "values": {str(n): {} for n in range(501)}}}, "500"),
    "other turns": (
        {"limits": {"by": "property:tenant"}, "fair_by": "sharding_key"},
        "give sharding_key or group as by.",
    ),
    "ordered": (
        {"limits": {"by": "property:tenant"}, "ordered": True},
        "give sharding_key or group as by of its limits",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_limits_that_cannot_be_kept_are_refused(group: LimitedGroup, case: str) -> None:
    settings, detail = REFUSED[case]

    answer = group.put(**settings)

    assert answer.status == 422, answer
    assert detail in answer.problem["detail"]
