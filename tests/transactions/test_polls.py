"""Polled checks, for producers that cannot be called; and producer groups, which bound what stays undecided."""

import http.client
import time
from functools import partial
from urllib.parse import urlsplit
from uuid import uuid4

from mqbroker_client import Admin, CheckPoller, Consumer, HalfMessage, LocalTransactionState, Producer

from tests.broker import characters
from tests.broker.characters import bodies, register
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.load import Crowd, at_once
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import ended, told
from tests.broker.wire import Document, Wire, problem


def test_a_producer_that_cannot_be_called_polls_for_its_checks_and_answers_by_an_end(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    asked: list[HalfMessage] = []

    def check(half: HalfMessage) -> LocalTransactionState:
        asked.append(half)
        return LocalTransactionState.COMMIT

    transaction = producer.begin(orders, b"order 1", keys=["o-1"])
    poller = CheckPoller(producer, check, wait_seconds=10)

    assert eventually(poller.answer_due) == 1

    decided = told(wire, transaction.transaction_id)
    handed_out, end = decided["history"][1:]
    assert [(half.transaction_id, half.body, half.keys, half.check_times) for half in asked] == [
        (transaction.transaction_id, b"order 1", ("o-1",), 1)
    ]
    assert (decided["state"], decided["check_times"], end["by"]) == ("COMMITTED", 1, "check")
    assert (handed_out["event"], handed_out["counted"], handed_out["endpoint"]) == ("check", True, None)
    assert bodies(consumer.receive(orders)) == [b"order 1"]


async def test_a_due_check_is_handed_to_one_of_many_polls(
    broker: RunningBroker, producer: Producer, orders: str
) -> None:
    half = {"op": "half", "topic": orders, "body": "order", "producer_group": producer.group}
    asked = {"max_transactions": 5, "wait_seconds": 1}
    first: list[str] = []

    async def poll(_: int) -> None:
        while len(first) < 40 and time.monotonic() < give_up_at:
            _, document = await crowd.post(f"/v1/producer-groups/{producer.group}/checks/receive", asked)
            # A half that waits for its answer is due again, and handed out as its next check.
            first.extend(one["transaction_id"] for one in document["transactions"] if one["check_times"] == 1)

    async with Crowd(broker.urls) as crowd:
        begun = await crowd.bulk([half] * 40)
        give_up_at = time.monotonic() + at_this_load(10)
        await at_once(poll, range(8))

    assert sorted(first) == sorted(result["transaction_id"] for result in begun)


def test_a_poll_whose_producer_has_gone_is_handed_nothing(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1", check_immunity_seconds=3)
    path = f"/v1/producer-groups/{producer.group}/checks/receive"
    for _ in range(8):
        line = http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=120)
        line.request("POST", path, b'{"wait_seconds": 20}', {"Authorization": f"Bearer {API_KEY}"})
        line.close()

    answer = wire.post(path, {"wait_seconds": 20})

    [handed_out] = answer.document["transactions"]
    assert handed_out["transaction_id"] == str(transaction.transaction_id)
    assert handed_out["check_times"] == 1


def test_a_poll_is_handed_what_its_key_may_produce(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str, coupons: str
) -> None:
    name = characters.name("coupon-service")
    key = wire.post("/v1/api-keys", {"name": name, "scopes": [f"produce:{coupons}"]}).document["key"]
    half: Document = {"producer_group": producer.group}
    of_orders = {**half, "topic": orders, "body": "order 1"}
    of_both = {**half, "messages": [{"topic": orders, "body": "order 2"}, {"topic": coupons, "body": "coupon 2"}]}
    of_coupons = {**half, "topic": coupons, "body": "coupon 3"}
    begun = [wire.post("/v1/transactions", document).document for document in (of_orders, of_both, of_coupons)]
    poll = partial(Wire(wire.url, key).post, f"/v1/producer-groups/{producer.group}/checks/receive")

    handed_out = poll({"wait_seconds": 20}).document["transactions"]

    assert [entry["transaction_id"] for entry in handed_out] == [begun[2]["transaction_id"]]
    # The others were due before it, and stay for keys that may produce to their topics.
    assert [told(wire, document["transaction_id"])["check_times"] for document in begun] == [0, 0, 1]


def test_what_a_poll_asks_for_has_bounds(wire: Wire, producer: Producer, orders: str) -> None:
    producer.begin(orders, b"order 1")
    path = f"/v1/producer-groups/{producer.group}/checks/receive"

    assert wire.post(path, {"max_transactions": 101}).problem == problem(
        422, "message_illegal", "max_transactions 101 is not between 1 and 100."
    )
    assert wire.post(path, {"wait_seconds": 21}).problem == problem(
        422, "message_illegal", "wait_seconds 21.0 is not between 0 and 20."
    )
    assert wire.post("/v1/producer-groups/nobody/checks/receive", {}).problem == problem(
        404,
        "group_not_exist",
        "There is no producer group nobody: PUT /v1/producer-groups/nobody makes it.",
    )


def test_a_group_has_no_more_undecided_transactions_than_it_may(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str
) -> None:
    Admin(broker.client()).create_producer_group(producer.group, max_undecided=2)
    half: Document = {"topic": orders, "body": "order 1", "producer_group": producer.group}
    first = producer.begin(orders, b"order 1")
    producer.begin(orders, b"order 2")

    refused = wire.post("/v1/transactions", half)
    first.commit()
    third = wire.post("/v1/transactions", half)

    assert refused.problem == problem(
        429,
        "rate_limited",
        f"The producer group {producer.group} has 2 undecided transactions, its limit: end some of them first.",
        retry_after_seconds=1,
    )
    assert "retry-after" in refused.headers
    assert third.status == 201


def test_a_begin_is_answered_again_when_its_group_has_no_place_left(
    broker: RunningBroker, wire: Wire, producer: Producer, orders: str
) -> None:
    Admin(broker.client()).create_producer_group(producer.group, max_undecided=1)
    half: Document = {"topic": orders, "body": "order 1", "producer_group": producer.group}
    begun = wire.post("/v1/transactions", {**half, "transaction_id": str(uuid4())}).document

    again = wire.post("/v1/transactions", {**half, "transaction_id": begun["transaction_id"]})
    another = wire.post("/v1/transactions", {**half, "transaction_id": str(uuid4())})

    assert (again.status, again.document) == (200, {**begun, "duplicate": True})
    assert (another.status, another.problem["code"]) == (429, "rate_limited")


def test_a_group_whose_checks_are_paused_is_not_asked_until_they_go_on(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    producer_endpoint: ProducerEndpoint,
    endpoint: ProducerEndpoint,
    orders: str,
) -> None:
    admin = Admin(broker.client())
    admin.create_producer_group(producer.group, checks_paused=True)
    paused = producer.begin(orders, b"order 1")
    busy = Producer(broker.client(), characters.name("busy-service"))
    register(broker, busy.group, endpoint.url)
    for body in (b"order 2", b"order 3"):
        # When one that was begun later has been asked about, this one has been due, too.
        eventually(partial(ended, wire, busy.begin(orders, body).transaction_id))
    before = told(wire, paused.transaction_id)

    admin.create_producer_group(producer.group, checks_paused=False)

    assert (before["state"], before["check_times"]) == ("PREPARED", 0)
    assert eventually(partial(ended, wire, paused.transaction_id))["check_times"] == 1


def test_an_operator_may_have_a_transaction_asked_about_now(
    wire: Wire, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1", check_immunity_seconds=3600)

    answer = wire.post(f"/v1/transactions/{transaction.transaction_id}/check", {})

    assert answer.status == 202
    assert eventually(partial(ended, wire, transaction.transaction_id))["state"] == "COMMITTED"


def test_no_producer_is_asked_about_a_transaction_that_is_not_pending(
    wire: Wire, producer: Producer, orders: str
) -> None:
    transaction = producer.begin(orders, b"order 1")
    transaction.commit()
    unknown = uuid4()

    assert wire.post(f"/v1/transactions/{transaction.transaction_id}/check", {}).problem == problem(
        409,
        "transaction_ended",
        f"Transaction {transaction.transaction_id} is already COMMITTED: there is no need for a check.",
    )
    assert wire.post(f"/v1/transactions/{unknown}/check", {}).problem == problem(
        404,
        "transaction_not_found",
        f"There is no transaction {unknown}: it was never stored, or retention has deleted it.",
    )
