"""API keys: who may do what, and for how long."""

from datetime import datetime, timedelta

import pytest

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, problem
from tests.control.operators import Operator, illegal

REVOKED = "The API key is unknown, revoked or expired: create a new key at /v1/api-keys."
NAME_RULE = "a name begins with a letter or _, and has 1 to 100 letters, digits, blanks and _ . : @ + -."
SCOPE_RULE = (
    "a scope is manage, metrics, produce:<topic pattern>, consume:<group pattern> or read:<topic pattern>, where * "
    "stands for any text."
)


@pytest.fixture
def holder() -> str:
    """The name of a key that no other test has."""
    return characters.name("holder")


def with_key(operator: Operator, key: str) -> Operator:
    """A caller with this key, at the same web process."""
    return Operator(operator.url, key)


def later(time: str, seconds: int) -> str:
    """A time so many seconds later."""
    return (datetime.fromisoformat(time) + timedelta(seconds=seconds)).isoformat()


def test_a_key_is_shown_once(operator: Operator, holder: str) -> None:
    answer = operator.make("/v1/api-keys", name=holder, scopes=["produce:orders-*", "consume:*"])

    assert answer.status == 201
    key = answer.document.pop("key")
    assert key.startswith("mq_")
    assert {**answer.document, "id": ..., "created_at": ...} == {
        "id": ...,
        "name": holder,
        "hint": key[-4:],
        "scopes": ["produce:orders-*", "consume:*"],
        "created_at": ...,
        "expires_at": None,
        "messages_per_second": None,
        "bytes_per_second": None,
        "max_undecided": None,
        "namespace": None,
        "refused": 0,
        "refused_at": None,
    }
    assert answer.document in operator.walks("/v1/api-keys")
    assert operator.reads(f"/v1/api-keys/{holder}") == answer.document


def test_a_key_that_manages_looks_after_consumer_groups(operator: Operator, holder: str, orders: str) -> None:
    key = operator.make("/v1/api-keys", name=holder, scopes=["manage"]).document["key"]
    group = characters.name("coupon-service")
    operator.put(f"/v1/topics/{orders}", queues=1)
    operator.put(f"/v1/consumer-groups/{group}")
    manager = with_key(operator, key)

    assert manager.get(f"/v1/dead-letters/{group}").document == {"results": [], "next": None}
    assert manager.get(f"/v1/consumer-groups/{group}/offsets").status == 200
    assert manager.put(f"/v1/consumer-groups/{group}/offsets", topic=orders, to="latest").status == 200
    assert manager.make(f"/v1/consumer-groups/{group}/receive", topic=orders).problem["code"] == "no_permission"


def test_a_key_recalls_only_what_it_may_send(operator: Operator, holder: str) -> None:
    key = operator.make("/v1/api-keys", name=holder, scopes=["produce:orders-*"]).document["key"]
    topic = characters.name("invoices")
    handle = operator.make("/v1/messages", topic=topic, body="invoice", delay_seconds=600).document["recall_handle"]

    refused = with_key(operator, key).make("/v1/messages/recall", recall_handle=handle)

    # As where there is no such message.
    assert (refused.status, refused.problem["code"]) == (404, "message_not_found")
    assert operator.make("/v1/messages/recall", recall_handle=handle).document["state"] == "RECALLED"


def test_a_bulk_of_a_key_makes_no_topic_that_the_key_may_not_send_to(operator: Operator, holder: str) -> None:
    key = operator.make("/v1/api-keys", name=holder, scopes=["produce:orders-*"]).document["key"]
    topic = characters.name("invoices")

    [refused] = with_key(operator, key).bulk({"op": "send", "topic": topic, "body": "invoice"})

    assert (refused["status"], refused["code"]) == (403, "no_permission")
    assert operator.get(f"/v1/topics/{topic}").status == 404


def test_a_key_may_do_what_its_scopes_say_and_no_more(operator: Operator, holder: str) -> None:
    key = operator.make("/v1/api-keys", name=holder, scopes=["produce:orders-*"]).document["key"]
    producer = with_key(operator, key)
    topic = characters.name("orders")

    assert producer.make("/v1/messages", topic=topic, body="order").status == 201
    assert producer.make("/v1/messages", topic="invoices", body="invoice").problem == problem(
        403, "no_permission", f"The key '{holder}' lacks the scope produce:invoices: add it at /v1/api-keys."
    )
    assert len(producer.make("/v1/messages", topic="invoices" * 10_000, body="invoice").problem["detail"]) < 300
    for refused in (producer.get("/v1/topics"), producer.put(f"/v1/topics/{topic}"), producer.get("/v1/api-keys")):
        assert refused.problem == problem(
            403, "no_permission", f"The key '{holder}' lacks the scope manage: add it at /v1/api-keys."
        )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"scopes": ["manage"]}, "name: it is missing."),
        ({"name": "1234", "scopes": ["manage"]}, f"name: {NAME_RULE}"),
        ({"name": "a/b", "scopes": ["manage"]}, f"name: {NAME_RULE}"),
        ({"name": "a\n", "scopes": ["manage"]}, f"name: {NAME_RULE}"),
        ({"name": 7, "scopes": ["manage"]}, f"name: {NAME_RULE}"),
        ({"name": "shop", "scopes": []}, "scopes: it has fewer than 1."),
        ({"name": "shop", "scopes": "manage"}, "scopes: it is no list."),
        ({"name": "shop", "scopes": ["admin"]}, f"scopes: 0: {SCOPE_RULE}"),
        ({"name": "shop", "scopes": ["manage", "produce:"]}, f"scopes: 1: {SCOPE_RULE}"),
        (
            {"name": "shop", "scopes": ["manage"], "expires_at": "2026-01-01T00:00:00"},
            "expires_at: it is no RFC 3339 time with an offset, such as 2026-01-01T00:00:00Z.",
        ),
        (
            {"name": "shop", "scopes": ["manage"], "expires_at": "2020-01-01T00:00:00Z"},
            "expires_at: this time is in the past. Give a time in the future.",
        ),
        (
            {"name": "shop", "scopes": ["manage"], "key": "x"},
            "There is no field key here: the fields are name, scopes, namespace, expires_at, "
            "messages_per_second, bytes_per_second, max_undecided.",
        ),
    ],
)
def test_a_bad_field_is_named_with_what_is_wrong(operator: Operator, fields: dict[str, object], sentence: str) -> None:
    assert illegal(operator.make("/v1/api-keys", **fields)) == sentence
    assert operator.get("/v1/api-keys/shop").status == 404


def test_two_keys_never_share_a_name(operator: Operator, holder: str) -> None:
    operator.make("/v1/api-keys", name=holder, scopes=["manage"])

    again = operator.make("/v1/api-keys", name=holder, scopes=["manage"])

    assert illegal(again) == f"name: there is already an API key '{holder}': revoke this key first."


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_revoked_key_is_refused_everywhere_within_5_seconds(
    broker: RunningBroker, operator: Operator, holder: str, orders: str, by: str
) -> None:
    made = operator.make("/v1/api-keys", name=holder, scopes=["manage", "produce:*"]).document
    holders = [Operator(url, made["key"]) for url in broker.urls]
    assert [one.make("/v1/messages", topic=orders, body="order").status for one in holders] == [201, 201]

    assert operator.delete(f"/v1/api-keys/{made[by]}").status == 204

    def refused() -> list[Answer] | None:
        answers = [one.make("/v1/messages", topic=orders, body="order") for one in holders]
        return answers if all(answer.status == 401 for answer in answers) else None

    for answer in eventually(refused, within_seconds=5):
        assert answer.problem == problem(401, "unauthenticated", REVOKED)
    assert holders[0].get("/v1/topics").problem == problem(401, "unauthenticated", REVOKED)


def test_an_expired_key_is_refused(operator: Operator, holder: str) -> None:
    clock = operator.reads("/v1/stats")["at"]
    made = operator.make("/v1/api-keys", name=holder, scopes=["manage"], expires_at=later(clock, seconds=1)).document
    holder_of_it = with_key(operator, made["key"])
    assert holder_of_it.get("/v1/topics").status == 200

    eventually(lambda: holder_of_it.get("/v1/topics").status == 401, within_seconds=5)

    assert holder_of_it.get("/v1/topics").problem == problem(401, "unauthenticated", REVOKED)


def test_an_unknown_key_is_not_found(operator: Operator) -> None:
    for path in ("nobody", "0", "99999999999999999999", "a%20b"):
        assert operator.delete(f"/v1/api-keys/{path}").problem["code"] == "not_found"
    assert operator.get("/v1/api-keys/nobody").problem == problem(
        404, "not_found", "There is no API key 'nobody': GET /v1/api-keys lists them."
    )
