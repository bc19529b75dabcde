"""Changing a key: its scopes and its expiry, by name or id, while the key itself stays."""

import pytest

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, problem
from tests.control.operators import Operator, illegal
from tests.control.test_api_keys import SCOPE_RULE, later, with_key


@pytest.fixture
def made(operator: Operator) -> Document:
    """A key that may send to one topic."""
    found: Document = operator.make(
        "/v1/api-keys", name=characters.name("holder"), scopes=["produce:orders-*"], expires_at="2999-01-01T00:00:00Z"
    ).document
    return found


def shown(made: Document, **changed: object) -> Document:
    """A key as it is shown once it has changed."""
    return {name: value for name, value in made.items() if name != "key"} | changed


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_scope_is_added_and_the_key_stays(operator: Operator, made: Document, by: str) -> None:
    invoices = characters.name("invoices")
    holder = with_key(operator, made["key"])
    refused = holder.make("/v1/messages", topic=invoices, body="invoice").problem
    assert refused["detail"].endswith(f"lacks the scope produce:{invoices}: add it at /v1/api-keys.")
    scopes = ["produce:orders-*", "produce:invoices-*"]

    answer = operator.put(f"/v1/api-keys/{made[by]}", scopes=scopes)

    assert (answer.status, answer.document) == (200, shown(made, scopes=scopes))
    assert operator.reads(f"/v1/api-keys/{made['name']}") == answer.document
    eventually(lambda: holder.make("/v1/messages", topic=invoices, body="invoice").status == 201, within_seconds=5)


def test_a_scope_that_is_taken_away_is_refused_everywhere_within_5_seconds(
    broker: RunningBroker, operator: Operator, made: Document, orders: str
) -> None:
    holders = [Operator(url, made["key"]) for url in broker.urls]
    assert [holder.make("/v1/messages", topic=orders, body="order").status for holder in holders] == [201, 201]

    assert operator.put(f"/v1/api-keys/{made['name']}", scopes=["consume:coupons"]).status == 200

    eventually(
        lambda: all(holder.make("/v1/messages", topic=orders, body="order").status == 403 for holder in holders),
        within_seconds=5,
    )


def test_what_is_left_out_stays_as_it_is(operator: Operator, made: Document) -> None:
    path = f"/v1/api-keys/{made['name']}"

    assert operator.put(path).document == shown(made)
    assert operator.put(path, expires_at=None).document == shown(made, expires_at=None)
    assert operator.put(path, scopes=["manage"]).document == shown(made, scopes=["manage"], expires_at=None)


def test_an_expired_key_is_good_again_with_a_later_expiry(operator: Operator, made: Document) -> None:
    clock = operator.reads("/v1/stats")["at"]
    path, holder = f"/v1/api-keys/{made['name']}", with_key(operator, made["key"])
    assert operator.put(path, scopes=["manage"], expires_at=later(clock, seconds=1)).status == 200
    eventually(lambda: holder.get("/v1/topics").status == 401, within_seconds=5)

    assert operator.put(path, expires_at=later(clock, seconds=3600)).status == 200

    assert holder.get("/v1/topics").status == 200


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"scopes": []}, "scopes: it has fewer than 1."),
        ({"scopes": ["admin"]}, f"scopes: 0: {SCOPE_RULE}"),
        ({"scopes": None}, "scopes: it cannot be null."),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at: this time is in the past. Give a time in the future."),
        (
            {"name": "other"},
            "There is no field name here: the fields are scopes, namespace, expires_at, "
            "messages_per_second, bytes_per_second, max_undecided.",
        ),
    ],
)
def test_a_change_that_breaks_a_rule_changes_nothing(
    operator: Operator, made: Document, fields: dict[str, object], sentence: str
) -> None:
    path = f"/v1/api-keys/{made['name']}"

    assert illegal(operator.put(path, **fields)) == sentence
    assert operator.reads(path) == shown(made)


def test_only_a_key_that_is_there_is_changed(operator: Operator) -> None:
    for path in ("nobody", "0", "a%20b"):
        assert operator.put(f"/v1/api-keys/{path}", scopes=["manage"]).problem["code"] == "not_found"
    assert operator.put("/v1/api-keys/nobody").problem == problem(
        404, "not_found", "There is no API key 'nobody': GET /v1/api-keys lists them."
    )
