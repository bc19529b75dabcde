"""What is shown once: keys and secrets that are made, in the answer to the request and nowhere else; and a recall."""

import re

import pytest
from mqbroker_client import Consumer, Producer

from tests.broker import characters
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.running import RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Wire
from tests.console.operators import Operator, Page
from tests.control.audits import Audit


def secret_of(page: Page) -> str:
    """The secret that a page shows."""
    found = re.search(r'id="secret">([^<]+)<', page.html)
    assert found is not None, page.text
    return found[1]


def test_a_key_is_made_shown_once_and_works(ada: Operator, audit: Audit, broker: RunningBroker, orders: str) -> None:
    name = characters.name("shop-key")
    form: dict[str, object] = {
        "action": "key.make",
        "target": name,
        "scopes": f"produce:{orders} read:*",
        "reason": "a new shop",
    }

    key = secret_of(ada.posts("actions/once/", form))

    assert Wire(broker.url, key).post("/v1/messages", {"topic": orders, "body": "order 1"}).status == 201
    [entry] = audit.of(name)
    assert (entry["author"], entry["action"], entry["reason"]) == ("ada", "key.make", "a new shop")
    assert entry["after"]["scopes"] == [f"produce:{orders}", "read:*"]
    pages = (ada.sees("api-keys/"), ada.sees(f"audit/?target={name}"), ada.posts("actions/once/", form))
    assert not [page.address for page in pages if key in page.html]
    assert key not in str(entry)


@pytest.mark.parametrize("scopes", ["everything", "produce:a|b manage nothing", ""])
def test_a_key_with_no_right_scope_is_not_made(ada: Operator, audit: Audit, scopes: str) -> None:
    name = characters.name("shop-key")

    page = ada.posts("actions/once/", {"action": "key.make", "target": name, "scopes": scopes, "reason": "why"})

    assert page.status == 422
    assert audit.of(name) == []


def test_an_endpoint_is_registered_tried_and_given_a_new_secret(
    ada: Operator, audit: Audit, wire: Wire, endpoint: ProducerEndpoint
) -> None:
    endpoint.replies(states("COMMIT"))
    group = characters.name("order-service")
    wire.call("PUT", f"/v1/producer-groups/{group}", b"{}")
    posted: dict[str, object] = {"action": "endpoint.register", "target": group, "url": endpoint.url, "reason": "why"}

    first = secret_of(ada.posts("actions/once/", posted))
    [found] = wire.get(f"/v1/producer-groups/{group}/endpoints").document["results"]
    target = f"{group} endpoint {found['id']}"
    tried = ada.posts("actions/once/", {"action": "endpoint.test", "target": target, "reason": "why"})
    second = secret_of(
        ada.posts("actions/once/", {"action": "endpoint.rotate_secret", "target": target, "reason": "it leaked"})
    )

    assert first != second
    assert "would be understood" in tried.text
    assert "whsec_" not in str(audit.of(target)) + str(audit.of(f"{group} {endpoint.url}"))
    assert [entry["action"] for entry in audit.of(target)] == ["endpoint.test", "endpoint.rotate_secret"]


def test_an_operator_makes_no_key_and_no_secret(oda: Operator, audit: Audit) -> None:
    name = characters.name("mine")

    for kind in ("key.make", "endpoint.register", "endpoint.rotate_secret", "subscription.rotate_secret"):
        form: dict[str, object] = {"action": kind, "target": name, "scopes": "manage", "url": "x", "reason": "why"}
        assert oda.posts("actions/once/", form).status == 403, kind
    assert audit.of(name) == []


def test_a_delayed_message_is_recalled(
    oda: Operator, audit: Audit, producer: Producer, consumer: Consumer, orders: str
) -> None:
    timer = str(producer.send(orders, b"order 1", delay_seconds=3600).message_id)
    now = str(producer.send(orders, b"order 3").message_id)
    assert "Recall" in oda.sees(f"messages/{timer}/").links
    assert "Recall" not in oda.sees(f"messages/{now}/").links

    page = oda.posts("actions/new/", {"action": "message.recall", "target": [timer, now], "reason": "why"})

    results = {target: result.split()[0] for target, *_, result, _ in page.table("results")}
    assert results == {timer: "done", now: "already_delivered"}
    assert [bytes(one.message.body) for one in received_until_empty(consumer, orders)] == [b"order 3"]
