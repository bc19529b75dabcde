"""Actions from the console: one, the selected, or all that match; previewed, with a reason, one result per target."""

import uuid
from urllib.parse import urlencode

import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.actions.conftest import finished, id_of
from tests.broker import characters
from tests.broker.characters import bodies, register
from tests.broker.endpoints import ProducerEndpoint, says, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.tellings import ended, received_until_empty, told
from tests.broker.wire import Wire
from tests.console.operators import Operator
from tests.control.audits import Audit

DONE = [("done", "paid, says the bank")]


def test_a_pending_transaction_is_committed_with_a_reason(
    oda: Operator, audit: Audit, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    pending = str(producer.begin(orders, b"order 4711", keys=["order-4711"]).transaction_id)
    preview = oda.follows(oda.sees(f"transactions/{pending}/"), "Commit")
    assert preview.table("preview") == [[f"PREPARED, {producer.group}, {orders}, order-4711"]]
    assert "1 transaction" in preview.text
    assert "mq-grave" not in preview.html

    done = oda.posts("actions/new/", {"action": "transaction.commit", "target": pending, "reason": DONE[0][1]})

    assert done.table("results")[0][:3] == [pending, f"COMMITTED, {producer.group}, {orders}, order-4711", "done"]
    assert (done.figure("progress"), done.figure("noun")) == ("1 of 1", "transaction")
    assert oda.follows(done, pending).address.endswith(f"/transactions/{pending}/")
    assert told(wire, pending)["state"] == "COMMITTED"
    assert bodies(consumer.receive(orders)) == [b"order 4711"]
    assert "COMMIT by operator ( user oda )" in oda.sees(f"transactions/{pending}/").text
    [entry] = audit.of(pending)
    assert (entry["author"], entry["action"], entry["reason"]) == ("oda", "transaction.commit", DONE[0][1])
    assert pending in oda.sees(f"audit/?target={pending}").text


def test_a_pending_transaction_is_checked_long_before_its_time(
    broker: RunningBroker, oda: Operator, audit: Audit, wire: Wire, producer: Producer, endpoint: ProducerEndpoint
) -> None:
    endpoint.replies(states("COMMIT"))
    register(broker, producer.group, endpoint.url)
    orders = characters.name("orders")
    pending = str(producer.begin(orders, b"order 1", check_immunity_seconds=3600).transaction_id)

    page = oda.posts("actions/new/", {"action": "transaction.check", "target": pending, "reason": "the shop is up"})

    assert page.table("results")[0][::2] == [pending, "done"]
    found = eventually(lambda: ended(wire, pending), within_seconds=30)
    assert [event["by"] for event in found["history"] if event["event"] == "end"] == ["check"]
    assert found["state"] == "COMMITTED"
    assert [entry["action"] for entry in audit.of(pending)] == ["transaction.check"]


def test_a_discarded_transaction_is_rolled_back(
    broker: RunningBroker, oda: Operator, audit: Audit, wire: Wire, producer: Producer, endpoint: ProducerEndpoint
) -> None:
    endpoint.replies(says(500))
    register(broker, producer.group, endpoint.url)
    discarded = str(producer.begin(characters.name("orders"), b"order 1").transaction_id)
    eventually(lambda: told(wire, discarded)["state"] == "DISCARDED", within_seconds=60)

    page = oda.posts("actions/new/", {"action": "transaction.rollback", "target": discarded, "reason": "never paid"})

    assert page.table("results")[0][::2] == [discarded, "done"]
    found = told(wire, discarded)
    assert [event["by"] for event in found["history"] if event["event"] == "end"] == ["operator"]
    assert found["state"] == "ROLLED_BACK"
    assert [entry["action"] for entry in audit.of(discarded)] == ["transaction.rollback"]


def test_nothing_is_done_without_a_reason(oda: Operator, wire: Wire, producer: Producer, orders: str) -> None:
    pending = str(producer.begin(orders, b"order 1").transaction_id)

    page = oda.posts("actions/new/", {"action": "transaction.commit", "target": pending, "reason": "  "})

    assert page.status == 422
    assert told(wire, pending)["state"] == "PREPARED"


def test_each_of_the_selected_has_its_result(oda: Operator, wire: Wire, producer: Producer, orders: str) -> None:
    first, second = (producer.begin(orders, b"order") for _ in range(2))
    first.rollback()
    targets = [str(first.transaction_id), str(second.transaction_id), str(uuid.UUID(int=7))]

    page = oda.posts("actions/new/", {"action": "transaction.commit", "target": targets, "reason": "paid"})

    results = {target: result.split()[0] for target, _, result, _ in page.table("results")}
    assert results == dict(zip(targets, ("transaction_ended", "done", "transaction_not_found"), strict=True))
    assert told(wire, targets[1])["state"] == "COMMITTED"


def test_two_hundred_discarded_are_resumed_by_their_filter(
    broker: RunningBroker, oda: Operator, audit: Audit, wire: Wire, endpoint: ProducerEndpoint
) -> None:
    topic, group, other = (characters.name(stem) for stem in ("orders", "order-service", "other-service"))
    endpoint.replies(says(500))
    half = {"op": "half", "topic": topic, "body": "order"}
    ids = [one["transaction_id"] for one in wire.bulk(*({**half, "producer_group": group} for _ in range(200)))]
    [left] = [one["transaction_id"] for one in wire.bulk({**half, "producer_group": other})]
    for name in (group, other):
        register(broker, name, endpoint.url, max_batch=100)
    state = f"/v1/discarded?limit=200&producer_group={group}"
    eventually(lambda: len(wire.get(state).document["results"]) == 200, within_seconds=180)
    eventually(lambda: told(wire, left)["state"] == "DISCARDED", within_seconds=60)
    wire.call("PUT", f"/v1/producer-groups/{group}", b'{"checks_paused": true}')
    matching = {"action": "discarded.resume", "all": "1", "state": "DISCARDED", "producer_group": group}

    preview = oda.sees(f"actions/new/?{urlencode(matching)}")
    page = finished(oda, oda.posts("actions/new/", {**matching, "reason": "the endpoint answers again"}))

    assert "200 transactions that match" in preview.text
    assert page.figure("progress") == "200 of 200"
    assert {told(wire, transaction_id)["state"] for transaction_id in ids} == {"PREPARED"}
    assert told(wire, left)["state"] == "DISCARDED"
    entries = audit.by_action(id_of(page))
    assert sorted(entry["target"] for entry in entries) == sorted(ids)
    assert {(entry["author"], entry["action"], entry["result"]) for entry in entries} == {
        ("oda", "discarded.resume", "done")
    }


def test_dead_letters_are_redriven_ten_as_a_canary_and_then_all(
    broker: RunningBroker, oda: Operator, audit: Audit, producer: Producer, consumer: Consumer, orders: str
) -> None:
    Admin(broker.client()).create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    for number in range(25):
        producer.send(orders, f"order {number}".encode(), queue_id=0)
    while deliveries := consumer.receive(orders):
        consumer.nack(deliveries)
    all_of_them: dict[str, object] = {
        "action": "dead_letter.redrive",
        "all": "1",
        "group": consumer.group,
        "reason": "the bug is mended",
    }

    asked = oda.sees(f"actions/new/?action=dead_letter.redrive&all=1&group={consumer.group}")
    canary = oda.posts("actions/new/", {**all_of_them, "most": "10"})
    first = bodies(received_until_empty(consumer, orders))
    rest = finished(oda, oda.posts("actions/new/", all_of_them))
    second = bodies(received_until_empty(consumer, orders))

    assert f"{orders}; 1 attempt; " in asked.text
    assert first == [f"order {number}".encode() for number in range(10)]
    assert second == [f"order {number}".encode() for number in range(10, 25)]
    assert (canary.figure("state"), rest.figure("progress")) == ("done", "15 of 15")
    assert len(audit.by_action(id_of(canary))) == 10


def test_dead_letters_for_a_topic_that_takes_no_messages_now_wait_for_it(
    broker: RunningBroker,
    oda: Operator,
    audit: Audit,
    producer: Producer,
    consumer: Consumer,
    orders: str,
    coupons: str,
) -> None:
    admin = Admin(broker.client())
    admin.create_consumer_group(consumer.group, retry_policy={"kind": "none"})
    admin.create_topic(coupons, permission="r")
    producer.send(orders, b"order 1")
    consumer.nack(consumer.receive(orders))
    wanted: dict[str, object] = {"all": "1", "group": consumer.group, "to_topic": coupons, "reason": "it is mended"}

    page = oda.posts("actions/new/", {"action": "dead_letter.redrive", **wanted})
    eventually(lambda: "Waits: The topic" in oda.sees(f"actions/{id_of(page)}/").text)
    assert audit.by_action(id_of(page)) == []

    admin.create_topic(coupons, permission="rw")
    done = finished(oda, page)
    assert bodies(consumer.receive(coupons)) == [b"order 1"]
    assert [entry["result"] for entry in audit.by_action(id_of(page))] == ["done"]
    assert "Waits:" not in done.text


def test_a_group_is_reset_after_a_dry_run(
    oda: Operator, audit: Audit, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", queue_id=0)
    consumer.ack(consumer.receive(orders))
    given = {"action": "offsets.reset", "target": consumer.group, "topic": orders, "to": "earliest"}

    preview = oda.sees(f"actions/new/?{urlencode(given)}")
    assert preview.table("dry-run")[0] == ["0", "1", "0", "1", "0"]
    assert consumer.receive(orders) == []
    page = oda.posts("actions/new/", {**given, "reason": "the coupons were lost"})

    assert page.table("results")[0][::2] == [consumer.group, "done"]
    assert bodies(consumer.receive(orders)) == [b"order 1"]


def test_a_group_is_paused_and_goes_on(
    oda: Operator, audit: Audit, producer: Producer, consumer: Consumer, orders: str
) -> None:
    producer.send(orders, b"order 1", queue_id=0)
    assert bodies(consumer.receive(orders)) == [b"order 1"]
    for kind in ("pause", "continue"):
        oda.posts("actions/new/", {"action": f"consumer_group.{kind}", "target": consumer.group, "reason": "why"})

    states = [(entry["before"]["paused"], entry["after"]["paused"]) for entry in audit.of(consumer.group)]
    assert states == [(False, True), (True, False)]


def test_a_revoked_key_is_refused_within_five_seconds(ada: Operator, broker: RunningBroker, wire: Wire) -> None:
    name = characters.name("shop-key")
    key = wire.post("/v1/api-keys", {"name": name, "scopes": ["manage"]}).document["key"]
    shop = Wire(broker.urls[1], key)
    assert shop.get("/v1/transactions/none").status == 404

    ada.posts("actions/new/", {"action": "key.revoke", "target": name, "reason": "it leaked"})

    eventually(lambda: shop.get("/v1/transactions/none").status == 401, within_seconds=5)


def test_an_action_is_paused_continued_and_cancelled(oda: Operator, audit: Audit, wire: Wire, orders: str) -> None:
    group = characters.name("order-service")
    half = {"op": "half", "topic": orders, "body": "order", "producer_group": group}
    wire.bulk(*([half] * 20))
    form: dict[str, object] = {
        "action": "transaction.rollback",
        "all": "1",
        "state": "PREPARED",
        "producer_group": group,
        "reason": "a test of the shop",
    }
    done = finished(oda, oda.posts("actions/new/", form))

    refused = oda.posts(f"actions/{id_of(done)}/steer/", {"to": "pause"})

    assert refused.status == 422
    assert "The action is done and accepts nothing, not pause." in refused.text


@pytest.mark.parametrize("kind", ["transaction.commit", "consumer_group.delete", "offsets.reset", "key.revoke"])
def test_a_viewer_does_nothing(vic: Operator, audit: Audit, kind: str) -> None:
    target = str(uuid.uuid4())

    seen = vic.sees(f"actions/new/?action={kind}&target={target}")
    posted = vic.posts("actions/new/", {"action": kind, "target": target, "reason": "because"})

    assert (seen.status, posted.status) == (403, 403)
    assert audit.of(target) == []


def test_an_operator_has_neither_deletes_nor_keys(oda: Operator, audit: Audit) -> None:
    name = characters.name("shop")

    for kind in ("topic.delete", "producer_group.delete", "consumer_group.delete", "endpoint.delete", "key.revoke"):
        page = oda.posts("actions/new/", {"action": kind, "target": name, "reason": "because"})
        assert page.status == 403, kind
        assert "sign in as admin" in page.text
    assert audit.of(name) == []
