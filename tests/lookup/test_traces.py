"""A trace has all that is kept of one message, in the order of time, and nothing that is not."""

import json
from functools import partial

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.tellings import ended
from tests.broker.wire import Document, Wire
from tests.lookup.looking import events, send, traced

NEVER = 3600.0


def group_of(trace: Document, group: str) -> Document:
    """How a group stands with a message, without its name."""
    [found] = [standing for standing in trace["groups"] if standing["group"] == group]
    return {name: value for name, value in found.items() if name != "group"}


def in_state(wire: Wire, message_id: str, group: str, state: str) -> Document:
    """The trace of a message, once a group stands so with it."""

    def looked() -> Document | None:
        trace = traced(wire, message_id)
        return trace if any((one["group"], one["state"]) == (group, state) for one in trace["groups"]) else None

    found = eventually(looked)
    assert found is not None
    return found


def retries(wire: Wire, group: str, **policy: object) -> None:
    """Makes a group with a retry policy."""
    policy = policy or {"kind": "none"}
    body = json.dumps({"retry_policy": policy}).encode()
    assert wire.call("PUT", f"/v1/consumer-groups/{group}", body).status == 201


def test_a_message_that_nobody_read_is_stored_and_visible(wire: Wire, orders: str) -> None:
    sent = send(wire, orders, "order 1")

    trace = traced(wire, sent["message_id"])

    stored, visible = trace["events"]
    assert trace == {
        "message_id": sent["message_id"],
        "topic": orders,
        "queue_id": sent["queue_id"],
        "state": "VISIBLE",
        "events": [
            {"event": "stored", "at": sent["stored_at"], "commit_log_offset": sent["commit_log_offset"]},
            {
                "event": "visible",
                "at": visible["at"],
                "topic": orders,
                "queue_id": sent["queue_id"],
                "queue_offset": sent["queue_offset"],
            },
        ],
        "waits": [],
        "groups": [],
    }
    assert stored["at"] <= visible["at"]


def test_a_delivery_is_in_flight_until_it_is_acked_and_passed_after(
    wire: Wire, consumer: Consumer, orders: str
) -> None:
    sent = send(wire, orders, "order 1")
    [delivery] = consumer.receive(orders, invisible_seconds=60)
    before = traced(wire, sent["message_id"])

    consumer.ack([delivery])

    received = before["events"][-1]
    place = {"group": consumer.group, "queue_id": sent["queue_id"], "queue_offset": sent["queue_offset"]}
    assert received == {"event": "received", "at": received["at"], **place, "delivery_attempt": 1}
    standing = group_of(before, consumer.group)
    assert standing == {
        "state": "IN_FLIGHT",
        "delivery_attempt": 1,
        "received_at": received["at"],
        "expires_at": standing["expires_at"],
    }
    after = traced(wire, sent["message_id"])
    # No row is left of an ack: the trace has that the group is past the message, and since when.
    assert after["events"] == [*before["events"][:-1], {**received, "event": "passed"}]
    assert group_of(after, consumer.group) == {"state": "PASSED", "delivery_attempt": 1, "passed_at": received["at"]}


def test_a_group_that_is_behind_waits_for_the_message(wire: Wire, consumer: Consumer, orders: str) -> None:
    send(wire, orders, "order 1", queue_id=0)
    second = send(wire, orders, "order 2", queue_id=0)
    consumer.receive(orders, max_messages=1)

    assert group_of(traced(wire, second["message_id"]), consumer.group) == {"state": "WAITING", "delivery_attempt": 1}


def test_a_message_that_a_filter_passed_over_is_not_told_as_received(
    wire: Wire, consumer: Consumer, orders: str
) -> None:
    sent = send(wire, orders, "order 1", tags="cancelled")
    consumer.receive(orders, filter="paid")

    trace = traced(wire, sent["message_id"])

    assert events(trace) == ["stored", "visible", f"passed {consumer.group}"]
    assert group_of(trace, consumer.group)["state"] == "PASSED"


def test_each_group_stands_for_itself(wire: Wire, consumer: Consumer, producer: Producer, orders: str) -> None:
    other = Consumer(consumer.broker, characters.name("invoices"))
    sent = send(wire, orders, "order 1", queue_id=1)
    consumer.ack(consumer.receive(orders))
    other.receive(orders)

    trace = traced(wire, sent["message_id"])

    assert {one["group"]: one["state"] for one in trace["groups"]} == {
        consumer.group: "PASSED",
        other.group: "IN_FLIGHT",
    }


def test_a_nack_is_told_by_its_retry_and_a_dead_letter_by_its_own_entry(
    wire: Wire, consumer: Consumer, orders: str
) -> None:
    group = consumer.group
    retries(wire, group, kind="table", delay_seconds=[1])
    wire.call("PUT", f"/v1/consumer-groups/{group}", b'{"max_reconsume_times": 1}')
    sent = send(wire, orders, "order 1")

    consumer.nack(consumer.receive(orders), delay_seconds=NEVER)
    waiting = traced(wire, sent["message_id"])
    assert events(waiting) == ["stored", "visible", f"received {group}"]
    [wait] = waiting["waits"]
    assert wait == {"topic": f"%RETRY%{group}", "deliver_at": wait["deliver_at"]}
    assert group_of(waiting, group) == {
        "state": "RETRYING",
        "delivery_attempt": 2,
        "next_attempt_at": wait["deliver_at"],
    }

    second = send(wire, orders, "order 2")
    consumer.nack(consumer.receive(orders))
    [retried] = eventually(partial(consumer.receive, orders))
    assert group_of(traced(wire, second["message_id"]), group)["delivery_attempt"] == 2
    consumer.nack([retried])

    dead = in_state(wire, second["message_id"], group, "DEAD_LETTER")
    steps = [event for event in events(dead) if not event.startswith("delayed")]
    assert steps == [
        "stored",
        "visible",
        f"received {group}",
        f"retry {group}",
        f"received {group}",
        f"dead_letter {group}",
    ]
    assert [event["delivery_attempt"] for event in dead["events"] if event["event"] == "received"] == [1, 2]


def test_a_redriven_letter_is_told_with_what_follows(wire: Wire, consumer: Consumer, orders: str) -> None:
    group = consumer.group
    retries(wire, group)
    sent = send(wire, orders, "order 1")
    consumer.nack(consumer.receive(orders))
    in_state(wire, sent["message_id"], group, "DEAD_LETTER")

    wire.post(f"/v1/dead-letters/{group}/redrive", {"all": True})
    waiting = in_state(wire, sent["message_id"], group, "WAITING")
    consumer.ack(eventually(partial(consumer.receive, orders)))

    assert group_of(waiting, group) == {"state": "WAITING", "delivery_attempt": 1}
    trace = in_state(wire, sent["message_id"], group, "PASSED")
    assert events(trace) == [
        "stored",
        "visible",
        f"received {group}",
        f"dead_letter {group}",
        f"redriven {group}",
        f"retry {group}",
        f"passed {group}",
    ]


def test_a_letter_redriven_to_another_topic_is_visible_there(
    wire: Wire, consumer: Consumer, orders: str, coupons: str
) -> None:
    retries(wire, consumer.group)
    sent = send(wire, orders, "order 1")
    consumer.nack(consumer.receive(orders))
    in_state(wire, sent["message_id"], consumer.group, "DEAD_LETTER")

    wire.post(f"/v1/dead-letters/{consumer.group}/redrive", {"all": True, "to_topic": coupons})

    trace = in_state(wire, sent["message_id"], consumer.group, "REDRIVEN")
    assert [event["topic"] for event in trace["events"] if event["event"] == "visible"] == [orders, coupons]


def test_an_ordered_group_holds_a_message_in_its_place_and_parks_what_follows(
    wire: Wire, consumer: Consumer, orders: str
) -> None:
    group = consumer.group
    wire.call("PUT", f"/v1/consumer-groups/{group}", b'{"ordered": true}')
    first, second = (send(wire, orders, f"step {step}", sharding_key="order 1") for step in (1, 2))
    consumer.nack(consumer.receive(orders, max_messages=1), delay_seconds=NEVER)
    consumer.receive(orders)

    held, parked = (group_of(traced(wire, one["message_id"]), group) for one in (first, second))

    assert held == {"state": "RETRYING", "delivery_attempt": 2, "next_attempt_at": held["next_attempt_at"]}
    assert parked == {"state": "PARKED", "delivery_attempt": 1}


@pytest.mark.parametrize("delay", [{"delay_level": 1}, {"delay_seconds": 0.5}])
def test_a_delayed_message_waits_and_is_visible_then(wire: Wire, orders: str, delay: Document) -> None:
    sent = send(wire, orders, "later", **delay)
    before = traced(wire, sent["message_id"])

    eventually(lambda: not traced(wire, sent["message_id"])["waits"])
    after = traced(wire, sent["message_id"])

    [wait] = before["waits"]
    assert (before["state"], wait["topic"]) == ("DELAYED", orders)
    assert abs(len(wait["deliver_at"]) - len(sent["deliver_at"])) <= 1
    at_level = ["delayed"] if "delay_level" in delay else []
    assert (after["state"], events(after)) == ("VISIBLE", ["stored", *at_level, "visible"])
    assert [event["deliver_at"] for event in after["events"] if "deliver_at" in event] == [wait["deliver_at"]]


def test_a_recalled_message_is_told_as_far_as_a_row_proves_it(wire: Wire, orders: str) -> None:
    at_level = send(wire, orders, "later", delay_level=5)
    timer = send(wire, orders, "later", delay_seconds=600)

    for one in (at_level, timer):
        assert wire.post("/v1/messages/recall", {"recall_handle": one["recall_handle"]}).status == 200

    trace = traced(wire, at_level["message_id"])
    assert (trace["state"], events(trace), trace["waits"]) == ("RECALLED", ["stored", "delayed"], [])
    trace = traced(wire, timer["message_id"])
    assert (trace["state"], events(trace), trace["waits"]) == ("INVISIBLE", ["stored"], [])


def test_a_transaction_is_told_with_its_checks_and_its_end(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(states("UNKNOWN"), states("COMMIT"))
    transaction = producer.begin(orders, b"order 1")
    prepared = traced(wire, transaction.message_id)

    told = eventually(partial(ended, wire, transaction.transaction_id))

    assert prepared["state"] == "PREPARED"
    assert prepared["transaction_id"] == str(transaction.transaction_id)
    assert prepared["producer_group"] == producer.group
    trace = traced(wire, transaction.message_id)
    assert trace["state"] == "VISIBLE"
    assert events(trace) == ["stored", "prepared", "check", "check", "end", "visible"]
    assert [event for event in trace["events"] if event["event"] in ("check", "end")] == told["history"][1:]


def test_a_message_that_was_rolled_back_is_never_visible(wire: Wire, producer: Producer, orders: str) -> None:
    transaction = producer.begin(orders, b"order 1")
    transaction.rollback()

    trace = traced(wire, transaction.message_id)

    assert (trace["state"], events(trace)) == ("ROLLED_BACK", ["stored", "prepared", "end"])


def test_a_discarded_message_is_visible_to_its_operator_only(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    producer_endpoint.replies(states("UNKNOWN"))
    transaction = producer.begin(orders, b"order 1")

    def discarded() -> Document | None:
        trace = traced(wire, transaction.message_id)
        return trace if trace["state"] == "DISCARDED" else None

    trace = eventually(discarded)

    assert trace is not None
    assert events(trace) == ["stored", "prepared", "check", "check", "check", "discard", "visible"]
    assert trace["events"][-1]["topic"] == "TRANS_CHECK_MAX_TIME_TOPIC"


def test_a_group_that_was_reset_waits_for_the_message_again(wire: Wire, consumer: Consumer, orders: str) -> None:
    sent = send(wire, orders, "order 1")
    consumer.ack(consumer.receive(orders))

    reset = f'{{"topic": "{orders}", "to": "earliest"}}'.encode()
    assert wire.call("PUT", f"/v1/consumer-groups/{consumer.group}/offsets", reset).status == 200

    assert group_of(traced(wire, sent["message_id"]), consumer.group)["state"] == "WAITING"
    consumer.ack(consumer.receive(orders))
    assert group_of(traced(wire, sent["message_id"]), consumer.group)["state"] == "PASSED"


def test_the_moment_of_a_pass_is_found_among_many(wire: Wire, consumer: Consumer, orders: str) -> None:
    sent = [send(wire, orders, str(number), queue_id=0) for number in range(12)]
    passes = []
    for _ in range(12):
        deliveries = consumer.receive(orders, max_messages=1)
        passes.append(group_of(traced(wire, str(deliveries[0].message.message_id)), consumer.group)["received_at"])
        consumer.ack(deliveries)

    standings = [group_of(traced(wire, one["message_id"]), consumer.group) for one in sent]

    assert [standing["passed_at"] for standing in standings] == passes
