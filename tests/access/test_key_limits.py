"""Limits of an API key: what it sends a second, and the transactions that it leaves undecided."""

from collections.abc import Sequence
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.key_limits import Allowance, Bucket
from store.errors import RateLimited
from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document, problem
from tests.console.operators import Operator as ConsoleUser
from tests.control.operators import Operator, illegal

SCOPES = ["produce:*", "consume:*", "read:*"]
LIMITS = ("messages_per_second", "bytes_per_second", "max_undecided")


class Holder:
    """A program with a key of its own, at both web processes."""

    def __init__(self, operator: Operator, urls: Sequence[str], **limits: int) -> None:
        self.name = characters.name("holder")
        self.topic = characters.name("orders")
        key = operator.make("/v1/api-keys", name=self.name, scopes=SCOPES, **limits).document["key"]
        self.webs = [Operator(url, key) for url in urls]

    def sends(self, body: str = "order", web: int = 0) -> Answer:
        return self.webs[web].make("/v1/messages", topic=self.topic, body=body)

    def sends_batch(self, count: int) -> Answer:
        messages = [{"body": "order"} for _ in range(count)]
        return self.webs[0].make("/v1/messages/batch", topic=self.topic, messages=messages)

    def begins(self, web: int = 0, **fields: object) -> Answer:
        half = {"topic": self.topic, "body": "order", "producer_group": self.name}
        return self.webs[web].make("/v1/transactions", **{**half, **fields})

    def ends(self, begun: Document, state: str = "COMMIT") -> Answer:
        path = f"/v1/transactions/{begun['transaction_id']}/end"
        return self.webs[0].make(path, producer_group=self.name, state=state)


def pause_of(refused: Answer) -> int:
    """The seconds after which a refused request may come again: in its header and in its document."""
    seconds = int(refused.headers["retry-after"])
    assert refused.problem["retry_after_seconds"] == seconds
    return seconds


def test_a_key_sends_as_many_messages_a_second_as_it_may(broker: RunningBroker, operator: Operator) -> None:
    holder = Holder(operator, broker.urls, messages_per_second=1)

    assert holder.sends_batch(100).status == 201
    refused = holder.sends()

    pause = pause_of(refused)
    assert 1 < pause <= 100
    assert refused.problem == problem(
        429,
        "rate_limited",
        f"The key {holder.name!r} has used up its limit of 1 messages a second: try again in {pause} s, or "
        "raise messages_per_second at /v1/api-keys.",
        retry_after_seconds=pause,
    )
    assert holder.begins().problem["code"] == "rate_limited"


def test_the_schema_says_which_calls_are_limited(operator: Operator) -> None:
    paths = operator.reads("/v1/schema")["paths"]

    limited = {(method, path) for path, of in paths.items() for method in of if "429" in of[method]["responses"]}

    sends = {("post", "/v1/messages"), ("post", "/v1/messages/batch"), ("post", "/v1/transactions")}
    # With messages it is a send.
    assert limited == {*sends, ("post", "/v1/consumer-groups/{group}/ack")}


def test_what_drains_a_topic_is_not_limited(broker: RunningBroker, operator: Operator) -> None:
    holder = Holder(operator, broker.urls, messages_per_second=1)
    begun = holder.begins().document
    assert holder.sends_batch(100).status in (201, 429)
    consumer = holder.webs[0]

    ended = holder.ends(begun)
    received = consumer.make(f"/v1/consumer-groups/{holder.name}/receive", topic=holder.topic)
    handles = [entry["receipt_handle"] for entry in received.document["messages"]]
    acked = consumer.make(f"/v1/consumer-groups/{holder.name}/ack", receipt_handles=handles)

    assert (ended.status, received.status, acked.status) == (200, 200, 200)
    assert handles


def test_a_key_sends_as_many_bytes_a_second_as_it_may(broker: RunningBroker, operator: Operator) -> None:
    holder = Holder(operator, broker.urls, bytes_per_second=100)

    assert holder.sends("x" * 10_000).status == 201
    refused = holder.sends()

    assert "its limit of 100 bytes a second" in refused.problem["detail"]
    assert 1 < pause_of(refused) <= 102


def test_each_operation_of_a_bulk_counts_by_itself(broker: RunningBroker, operator: Operator) -> None:
    holder = Holder(operator, broker.urls, bytes_per_second=100)
    holder.webs[0].make(f"/v1/consumer-groups/{holder.name}/receive", topic=holder.topic)
    large = {"op": "send", "topic": holder.topic, "body": "x" * 10_000}
    half = {"op": "half", "producer_group": holder.name, "topic": holder.topic, "body": "order"}
    ack = {"op": "ack", "group": holder.name, "receipt_handles": ["x"]}

    results = holder.webs[0].bulk(large, large, half, ack)

    assert [result["status"] for result in results] == [201, 429, 429, 200]
    assert 1 < results[1]["retry_after_seconds"] <= 102


@pytest.mark.parametrize("limits", [{"messages_per_second": 2}, {"bytes_per_second": 100}])
def test_an_ack_with_more_messages_than_a_second_may_have_passes_and_the_next_ones_wait(
    broker: RunningBroker, operator: Operator, limits: dict[str, int]
) -> None:
    holder = Holder(operator, broker.urls)
    assert holder.sends().status == 201
    web, group = holder.webs[0], f"/v1/consumer-groups/{holder.name}"
    [entry] = web.make(f"{group}/receive", topic=holder.topic).document["messages"]
    operator.put(f"/v1/api-keys/{holder.name}", **limits)

    messages = [{"topic": holder.topic, "body": f"paid {number}"} for number in range(20)]
    acked = web.make(f"{group}/ack", receipt_handles=[entry["receipt_handle"]], messages=messages)
    refused = holder.sends()

    assert acked.status == 200, acked.document
    assert (refused.status, refused.problem["code"]) == (429, "rate_limited")


def test_a_key_leaves_as_many_transactions_undecided_as_it_may(broker: RunningBroker, operator: Operator) -> None:
    holder = Holder(operator, broker.urls, max_undecided=2)
    two = [{"topic": holder.topic, "body": "order"}] * 2
    begun = holder.begins(transaction_id=str(uuid4())).document
    # Several messages go another way to the log.
    more = holder.webs[1].make("/v1/transactions", producer_group=holder.name, messages=two)
    assert more.status == 201

    refused = [holder.begins(web) for web in (0, 1)]
    again = holder.begins(transaction_id=begun["transaction_id"])
    holder.ends(begun)
    third = holder.begins()

    sentence = (
        f"The key {holder.name!r} has 2 undecided transactions, its limit: end some of them first, or raise "
        "max_undecided at /v1/api-keys."
    )
    expected = problem(429, "rate_limited", sentence, retry_after_seconds=1)
    assert [answer.problem for answer in refused] == [expected, expected]
    assert (again.status, third.status) == (200, 201)
    # Other keys go on in the same producer group.
    operator.put(f"/v1/producer-groups/{holder.name}", api_keys=None)
    half = {"topic": holder.topic, "body": "order", "producer_group": holder.name}
    assert operator.make("/v1/transactions", **half).status == 201


def test_a_limit_that_is_lifted_is_gone_in_every_process_within_5_seconds(
    broker: RunningBroker, operator: Operator
) -> None:
    holder = Holder(operator, broker.urls, messages_per_second=1)
    assert holder.sends_batch(100).status == 201
    assert holder.sends().status == 429

    changed = operator.put(f"/v1/api-keys/{holder.name}", messages_per_second=None)

    assert (changed.status, changed.document["messages_per_second"]) == (200, None)
    eventually(lambda: holder.sends().status == 201, within_seconds=5)


def test_refusals_are_shown_with_the_key_in_the_metrics_and_on_its_page(
    broker: RunningBroker, operator: Operator, password: str
) -> None:
    holder = Holder(operator, broker.urls, messages_per_second=1, bytes_per_second=1_000_000)
    holder.sends_batch(100)
    assert [holder.sends().status for _ in range(3)] == [429] * 3

    eventually(lambda: operator.reads(f"/v1/api-keys/{holder.name}")["refused"] == 3, within_seconds=60)

    shown = operator.reads(f"/v1/api-keys/{holder.name}")
    assert [shown[name] for name in LIMITS] == [1, 1_000_000, None]
    assert shown["refused_at"] is not None
    metrics = operator.page("/metrics").text
    assert f'mqbroker_key_refused_total{{api_key="{holder.name}"}} 3.0' in metrics
    assert f'mqbroker_key_limit{{api_key="{holder.name}",limit="bytes_per_second"}} 1e+06' in metrics
    page = ConsoleUser.signed_in(broker.url, "admin", password).sees(f"api-keys/?q={holder.name}")
    assert "messages per second 1, bytes per second 1,000,000" in page.text


def test_a_limit_of_nothing_is_none(operator: Operator) -> None:
    name = characters.name("holder")

    refused = operator.make("/v1/api-keys", name=name, scopes=SCOPES, max_undecided=0)
    changed = operator.put("/v1/api-keys/absent", bytes_per_second=-1)

    assert illegal(refused) == "max_undecided: it is below 1."
    assert illegal(changed) == "bytes_per_second: it is below 1."


@given(
    per_second=st.integers(1, 1000),
    steps=st.lists(st.tuples(st.floats(0, 3), st.integers(1, 3000)), min_size=1, max_size=60),
)
def test_no_more_passes_than_the_rate_a_second_of_it_and_one_request(
    per_second: int, steps: list[tuple[float, int]]
) -> None:
    allowance = Allowance(1, "shop", messages=Bucket(per_second, at=0.0))
    at, passed, largest = 0.0, 0, 0
    for pause, messages in steps:
        at += pause
        try:
            allowance.spend(messages, 0, at)
        except RateLimited:
            continue
        passed += messages
        largest = max(largest, messages)
        assert passed <= per_second * (at + 1) + largest + 0.001


@given(per_second=st.integers(1, 1000), messages=st.integers(1, 100_000))
def test_who_waits_as_long_as_it_is_told_passes(per_second: int, messages: int) -> None:
    allowance = Allowance(1, "shop", messages=Bucket(per_second, at=0.0))
    allowance.spend(messages, 0, at=0.0)
    try:
        allowance.spend(1, 0, at=0.0)
    except RateLimited as refusal:
        allowance.spend(1, 0, at=refusal.retry_after_seconds + 0.001)


def test_a_refused_request_takes_nothing_of_the_other_limit() -> None:
    allowance = Allowance(1, "shop", messages=Bucket(1, at=0.0), bytes=Bucket(10, at=0.0))
    allowance.spend(1, 5, at=0.0)
    with pytest.raises(RateLimited):
        allowance.spend(1, 1000, at=0.0)

    allowance.spend(1, 5, at=1.0)
