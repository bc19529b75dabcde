"""Promises about a console session at the API: its user's role says what it may change, and a viewer's only reads."""

import http.client
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from access import roles
from tests.broker.wire import Answer, problem
from tests.console.conftest import PASSWORD
from tests.console.operators import Operator
from tests.console.rows import Broker
from transactions.models import Endpoint, ProducerGroup

SessionOf = Callable[[str, str], Client]
SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="
MAY_NOT = "The console user {} and may not do this ({}): sign in as {}, or use an API key with the scope manage."
NO_KEY = "No API key: send the header `Authorization: Bearer <api key>`."


def calls(operator: Operator, method: str, path: str, body: object = None) -> Answer:
    """A call of the API with the operator's session and its CSRF token."""
    cookies = {cookie.name: cookie.value or "" for cookie in operator.cookies}
    headers = {
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
        "X-CSRFToken": cookies["csrftoken"],
    }
    line = http.client.HTTPConnection(urlsplit(operator.console).netloc, timeout=120)
    line.request(method, path, None if body is None else json.dumps(body), headers)
    answer = line.getresponse()
    data = answer.read()
    line.close()
    shown = json.loads(data) if data and "json" in (answer.headers["content-type"] or "") else data.decode()
    return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, shown)


def operations(operator: Operator) -> list[tuple[str, str]]:
    """Every method of every path that the API's document names, with the names of `kept` in the paths."""
    paths: dict[str, Any] = calls(operator, "GET", "/v1/schema").document["paths"]
    names = {"endpoint_id": "1", "queue_id": "0"}
    return [
        (method.upper(), re.sub(r"{(\w+)}", lambda found: names.get(found[1], "shop"), path))
        for path, found in paths.items()
        for method in found
    ]


def test_a_viewers_session_changes_nothing(broker: Broker, bob: Operator) -> None:
    broker.api_key("shop", hint="x2Qd", scopes=["produce:*"], digest=b"\xab" * 32)
    writes = [(method, path) for method, path in operations(bob) if method != "GET"]
    assert ("POST", "/v1/api-keys") in writes

    refused = {(method, path): calls(bob, method, path, {}).problem for method, path in writes}

    assert {(found["status"], found["code"]) for found in refused.values()} == {
        (403, "no_permission"),
        (401, "unauthenticated"),
    }
    assert refused["POST", "/v1/api-keys"] == forbidden("'bob' is viewer", "key.make", "admin")
    assert refused["PUT", "/v1/topics/shop"] == forbidden("'bob' is viewer", "topic.put", "operator")
    assert refused["POST", "/v1/messages"] == problem(401, "unauthenticated", NO_KEY)
    assert broker.connection.execute("SELECT name FROM api_key").fetchall() == [("shop",)]


def test_a_viewers_session_reads_what_is_configured_and_no_secret(broker: Broker, bob: Operator) -> None:
    endpoint = broker.endpoint(broker.producer_group("shop"), "https://shop.example/checks", secret=SECRET)
    broker.api_key("shop", hint="x2Qd", scopes=["produce:*"], digest=b"\xab" * 32)
    topic = broker.topic("shop")
    broker.half(1, topic, b"the body of order 1", broker.now - broker.now)
    reads = [path for method, path in operations(bob) if method == "GET"]
    reads.append(f"/v1/producer-groups/shop/endpoints/{endpoint}")

    answers = {path: calls(bob, "GET", quote(path)) for path in reads}

    assert [answers[path].status for path in ("/v1/topics", "/v1/api-keys", reads[-1], "/v1/stats")] == [200] * 4
    assert {answer.status for answer in answers.values()} <= {200, 401, 404}
    told = json.dumps([answer.document for answer in answers.values()])
    assert not [secret for secret in (SECRET, "the body of order 1", "\\\\xab") if secret in told]


@pytest.fixture
def session_of(client: Client, django_user_model: type[User]) -> SessionOf:
    """What signs a new user of a role in, within this process."""

    def signed_in(name: str, role: str) -> Client:
        user = django_user_model.objects.create(username=name)
        roles.assign(user, role, bodies=False)
        client.force_login(user)
        return client

    return signed_in


def put(client: Client, path: str, given: object) -> Any:
    """The answer to a PUT of the session's, which is not refused."""
    answer = client.put(path, given, content_type="application/json")
    assert answer.status_code in (200, 201), answer.content
    return answer.json()


def test_an_admins_session_changes_what_a_key_with_manage_may(admin_client: Client) -> None:
    assert put(admin_client, "/v1/topics/orders", {"queues": 2})["queues"] == 2
    assert admin_client.delete("/v1/topics/orders").status_code == 204


def test_an_operators_session_configures_and_pauses_and_has_neither_keys_nor_secrets_nor_deletes(
    session_of: SessionOf,
) -> None:
    oda = session_of("oda", roles.OPERATOR)
    shop = ProducerGroup.objects.create(name="shop")
    endpoint = Endpoint.objects.create(group=shop, url="https://shop.example/checks", secret=SECRET)
    of_endpoint = f"/v1/producer-groups/shop/endpoints/{endpoint.id}"

    assert put(oda, "/v1/topics/orders", {"queues": 2})["queues"] == 2
    assert put(oda, "/v1/consumer-groups/coupons", {"paused": True})["paused"]
    assert put(oda, "/v1/producer-groups/shop", {"checks_paused": True})["checks_paused"]
    assert put(oda, of_endpoint, {"max_batch": 2})["max_batch"] == 2
    for method, path, body, action in (
        ("DELETE", "/v1/topics/orders", None, "topic.delete"),
        ("DELETE", "/v1/consumer-groups/coupons", None, "consumer_group.delete"),
        ("PUT", of_endpoint, {"url": "https://elsewhere.example/"}, "endpoint.register"),
        ("PUT", of_endpoint, {"secret": SECRET}, "endpoint.register"),
        ("POST", f"{of_endpoint}/rotate-secret", None, "endpoint.rotate_secret"),
        ("PUT", "/v1/subscriptions/mails", {"url": "https://elsewhere.example/"}, "subscription.put"),
        ("POST", "/v1/api-keys", {"name": "mine", "scopes": ["manage"]}, "key.make"),
    ):
        refused = oda.generic(method, path, json.dumps(body) if body else b"", "application/json")
        assert refused.json() == forbidden("'oda' is operator", action, "admin")


def forbidden(user: str, action: str, least: str) -> object:
    """The refusal of an action that a role does not have."""
    return problem(403, "no_permission", MAY_NOT.format(user, action, least))


def test_a_session_reads_with_head_too(session_of: SessionOf) -> None:
    assert session_of("bob", roles.VIEWER).head("/v1/topics").status_code == 200


def test_a_sign_in_drops_the_sessions_that_are_over(broker: Broker, console: str) -> None:
    broker.connection.execute(
        "INSERT INTO django_session (session_key, session_data, expire_date)"
        " VALUES ('over', '', now() - interval '1 minute'), ('another', '', now() + interval '1 hour')"
    )

    Operator.signed_in(console, "oda", PASSWORD)

    kept = broker.connection.execute("SELECT session_key FROM django_session WHERE session_key IN ('over', 'another')")
    assert kept.fetchall() == [("another",)]
