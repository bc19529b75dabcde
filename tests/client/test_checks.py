"""Checks are answered only when they are signed, and a producer that cannot say is UNKNOWN."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3
from mqbroker_client import CheckListener, HalfMessage, LocalTransactionState
from mqbroker_client.core.checks import MAX_CALL_BYTES
from standardwebhooks import Webhook

from tests.client.answers import CHECK, TRANSACTION_ID
from tests.client.servers import wsgi_server

OLD_SECRET = "whsec_b2xkIG9sZCBvbGQgb2xkIG9sZCBvbGQgb2xkIG9sZCE="
NEW_SECRET = "whsec_bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXcgbmV3IG5ldyE="
EVENT = {"type": "transaction.check", "producer_group": "shop", "transactions": [CHECK]}
COMMIT = {"results": [{"transaction_id": TRANSACTION_ID, "state": "COMMIT"}]}

Call = Callable[[CheckListener, dict[str, str], bytes], tuple[int, Any]]


def by_wsgi(listener: CheckListener, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    with wsgi_server(listener.wsgi) as url:
        answer = urllib3.request("POST", url, headers=headers, body=body, retries=False)
    return answer.status, json.loads(answer.data)


def by_asgi(listener: CheckListener, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    """As a server calls it, with the body in two pieces."""
    pieces = [
        {"type": "http.request", "body": body[:10], "more_body": True},
        {"type": "http.request", "body": body[10:], "more_body": False},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return pieces.pop(0)

    async def send(event: Any) -> None:
        sent.append(event)

    scope = {
        "type": "http",
        "method": "POST",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(listener(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def signed(body: bytes, secret: str = NEW_SECRET, at: datetime | None = None) -> dict[str, str]:
    at = at or datetime.now(UTC)
    return {
        "webhook-id": "check-1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("check-1", at, body.decode()),
        "content-type": "application/json",
    }


@pytest.fixture(params=[by_wsgi, by_asgi])
def call(request: pytest.FixtureRequest) -> Call:
    called: Call = request.param
    return called


class Orders:
    """A producer that remembers what it was asked and says COMMIT."""

    def __init__(self) -> None:
        self.asked: list[HalfMessage] = []

    def check(self, half: HalfMessage) -> LocalTransactionState:
        self.asked.append(half)
        return LocalTransactionState.COMMIT


def test_a_signed_check_is_answered_from_the_producers_function(call: Call) -> None:
    orders = Orders()
    body = json.dumps(EVENT).encode()

    assert call(CheckListener(orders.check, [NEW_SECRET]), signed(body), body) == (200, COMMIT)

    half = orders.asked[0]
    assert (half.topic, half.body, half.keys, half.tags) == ("orders", b"order 1", ("order-1",), "paid")
    assert not half.body_omitted
    assert (str(half.transaction_id), half.producer_group, half.check_times) == (TRANSACTION_ID, "shop", 2)


def test_a_check_of_several_messages_tells_them_all(call: Call) -> None:
    orders = Orders()
    second = CHECK | {"topic": "invoices", "body": "invoice 1"}
    body = json.dumps(EVENT | {"transactions": [CHECK | {"messages": [CHECK, second]}]}).encode()

    assert call(CheckListener(orders.check, [NEW_SECRET]), signed(body), body) == (200, COMMIT)

    assert orders.asked[0].body == b"order 1"
    assert [(message.topic, message.body) for message in orders.asked[0].messages] == [
        ("orders", b"order 1"),
        ("invoices", b"invoice 1"),
    ]


def test_a_check_without_bodies_reaches_the_producers_function(call: Call) -> None:
    orders = Orders()
    omitted = {name: value for name, value in CHECK.items() if name != "body"} | {"body_omitted": True}
    body = json.dumps(EVENT | {"transactions": [omitted | {"messages": [omitted, omitted]}]}).encode()

    assert call(CheckListener(orders.check, [NEW_SECRET]), signed(body), body) == (200, COMMIT)

    half = orders.asked[0]
    assert (half.body_omitted, half.body, half.keys) == (True, b"", ("order-1",))
    assert [message.body for message in half.messages] == [b"", b""]


def test_during_a_rotation_both_secrets_are_good(call: Call) -> None:
    listener = CheckListener(Orders().check, [NEW_SECRET, OLD_SECRET])
    body = json.dumps(EVENT).encode()

    assert call(listener, signed(body, NEW_SECRET), body)[0] == 200
    assert call(listener, signed(body, OLD_SECRET), body)[0] == 200


@pytest.mark.parametrize(
    "spoil",
    [
        lambda headers, body: ({}, body),
        lambda headers, body: (headers, body.replace(b"order 1", b"order 2")),
        lambda headers, body: (headers, body + b"\xff"),
        lambda headers, body: (headers | {"webhook-id": "check-2"}, body),
        lambda headers, body: (headers | {"webhook-signature": "v1"}, body),
        lambda headers, body: (headers | {"webhook-signature": "v1,%%%"}, body),
        lambda headers, body: (headers | {"webhook-timestamp": "nan"}, body),
        lambda headers, body: (signed(body, OLD_SECRET), body),
        lambda headers, body: (signed(body, at=datetime.now(UTC) - timedelta(minutes=6)), body),
        lambda headers, body: (signed(body, at=datetime.now(UTC) + timedelta(minutes=6)), body),
    ],
)
def test_an_unsigned_altered_or_old_check_reaches_no_listener(call: Call, spoil: Any) -> None:
    orders = Orders()
    body = json.dumps(EVENT).encode()

    status, answer = call(CheckListener(orders.check, [NEW_SECRET]), *spoil(signed(body), body))

    assert (status, answer["status"]) == (401, 401)
    assert "signature" in answer["detail"]
    assert orders.asked == []


def fail(half: HalfMessage) -> LocalTransactionState:
    raise LookupError(f"no table for {half.topic}")


def test_a_producer_that_fails_is_unknown_and_says_why(call: Call) -> None:
    body = json.dumps(EVENT).encode()

    status, answer = call(CheckListener(fail, [NEW_SECRET]), signed(body), body)

    assert status == 200
    assert answer["results"] == [
        {"transaction_id": TRANSACTION_ID, "state": "UNKNOWN", "remark": "LookupError: no table for orders"}
    ]


def test_one_failing_half_does_not_spoil_the_others_of_its_call(call: Call) -> None:
    def check(half: HalfMessage) -> LocalTransactionState:
        return fail(half) if half.check_times else LocalTransactionState.ROLLBACK

    body = json.dumps(EVENT | {"transactions": [CHECK, CHECK | {"check_times": 0}]}).encode()

    status, answer = call(CheckListener(check, [NEW_SECRET]), signed(body), body)

    assert status == 200
    assert [result["state"] for result in answer["results"]] == ["UNKNOWN", "ROLLBACK"]


@pytest.mark.parametrize("event", [[], {"transactions": [{}]}, {"type": "transaction.check"}, "check", None])
def test_a_signed_body_that_is_no_check_is_a_bad_request(call: Call, event: object) -> None:
    body = json.dumps(event).encode()

    status, answer = call(CheckListener(Orders().check, [NEW_SECRET]), signed(body), body)

    assert status == 400
    assert answer["detail"].startswith("not a transaction.check event")


def test_only_post_is_answered() -> None:
    with wsgi_server(CheckListener(Orders().check, [NEW_SECRET]).wsgi) as url:
        assert urllib3.request("GET", url, retries=False).status == 405


def test_an_oversized_body_is_refused_unread() -> None:
    statuses: list[str] = []
    environ = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(MAX_CALL_BYTES + 1)}

    CheckListener(Orders().check, [NEW_SECRET]).wsgi(environ, lambda status, headers: statuses.append(status))  # type: ignore[arg-type]  # only what is used of a WSGI server

    assert statuses[0].startswith("413")


def test_a_text_is_one_secret_and_not_its_characters() -> None:
    assert CheckListener(Orders().check, NEW_SECRET).secrets == (NEW_SECRET,)


@pytest.mark.parametrize(
    ("secrets", "complaint"),
    [([], "at least one secret"), ([""], "at least one secret"), (["whsec_"], "is whsec_ and base64"), ("é", "base64")],
)
def test_a_listener_without_a_good_secret_does_not_start(secrets: list[str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        CheckListener(Orders().check, secrets)
