"""Requests: what is no message, or comes without a key, is refused, and every answer bears its request's id."""

from typing import Any
from uuid import uuid4

import pytest

from tests.broker.wire import Wire, problem

# Requests that are no message at all, with the beginning of the refusal.
SHAPES: dict[str, tuple[bytes, int, str, str]] = {
    "no JSON": (b"{", 400, "bad_request", "The body is not JSON: "),
    "nothing": (b"", 400, "bad_request", "The body is not JSON: it is empty."),
    "no UTF-8": (b'{"topic": "\xff"}', 400, "bad_request", "The body is not JSON: "),
    "no JSON after a wrong field": (b'{"topic": 1, "body": ', 400, "bad_request", "The body is not JSON: "),
    "no UTF-8 in an unknown field": (b'{"colour": "\xff"}', 400, "bad_request", "The body is not JSON: "),
    "a surrogate": (b'{"topic": "orders", "body": "\\ud800"}', 400, "bad_request", "The body is not JSON: "),
    "a topic twice": (
        b'{"topic": "orders", "body": "x", "topic": "coupons"}',
        400,
        "bad_request",
        "The meaning of the body is not clear: an object has the name 'topic' twice.",
    ),
    "a name twice, once in escapes, with white space": (
        b'{"topic": "orders", "body" : "x", "b\\u006fdy"\t: "y"}',
        400,
        "bad_request",
        "The meaning of the body is not clear: an object has the name 'body' twice.",
    ),
    "a property twice": (
        b'{"topic": "orders", "body": "{\\"a\\":1}", "properties": {"price": "1", "price": "2"}}',
        400,
        "bad_request",
        "The meaning of the body is not clear: an object has the name 'price' twice.",
    ),
    "a wrong field and a name twice": (
        b'{"topic": 1, "body": "x", "body": "y"}',
        400,
        "bad_request",
        "The meaning of the body is not clear: an object has the name 'body' twice.",
    ),
    "a control character in a property": (
        b'{"topic": "orders", "body": "x", "properties": {"price": "1\\n"}}',
        422,
        "message_illegal",
        "The property 'price' has a control character: leave it out of name and value.",
    ),
    "a control character in a property's name": (
        b'{"topic": "orders", "body": "x", "properties": {"pri\\u0085ce": "1"}}',
        422,
        "message_illegal",
        "The property 'pri\\x85ce' has a control character: leave it out of name and value.",
    ),
    "a list": (
        b"[]",
        422,
        "message_illegal",
        "The body of the request is a list: give a JSON object.",
    ),
    "an unknown field": (
        b'{"topic": "orders", "body": "x", "colour": "red"}',
        422,
        "message_illegal",
        "There is no field colour here: the fields are topic, body, body_base64, compression, message_id, ",
    ),
    "a number as body": (
        b'{"topic": "orders", "body": 1}',
        422,
        "message_illegal",
        "body is a whole number: give a text.",
    ),
    "a property that is no text": (
        b'{"topic": "orders", "body": "x", "properties": {"price": 1}}',
        422,
        "message_illegal",
        "A value of properties is a whole number: give a text.",
    ),
    "an id that is none": (
        b'{"topic": "orders", "body": "x", "message_id": "1"}',
        422,
        "message_illegal",
        "message_id cannot be read: give a UUID such as 01900000-0000-7000-8000-000000000001.",
    ),
    "a time without a zone": (
        b'{"topic": "orders", "body": "x", "deliver_at": "2026-01-01T00:00:00"}',
        422,
        "message_illegal",
        "deliver_at cannot be read: give a time with its zone, such as 2026-01-31T12:00:00Z.",
    ),
    "an object as body": (
        b'{"topic": "orders", "body": {"order": 1}}',
        422,
        "message_illegal",
        r"""body is an object: give a text; JSON goes in as a string, such as "{\"order\": 1}".""",
    ),
    "no compression": (
        b'{"topic": "orders", "body": "x", "compression": "gzip"}',
        422,
        "message_illegal",
        "compression is 'gzip': give one of zlib, zstd.",
    ),
}  # fmt: skip -- a shape to a line, where it fits


@pytest.mark.parametrize("shape", SHAPES)
def test_a_request_that_is_no_message_is_refused(wire: Wire, shape: str) -> None:
    body, status, code, beginning = SHAPES[shape]

    found: Any = wire.call("POST", "/v1/messages", body).problem

    assert (found["status"], found["code"]) == (status, code)
    assert found["detail"].startswith(beginning)


def test_a_call_that_needs_no_body_reads_the_one_that_it_is_given(wire: Wire) -> None:
    path = f"/v1/transactions/{uuid4()}/check"

    found = [wire.call("POST", path, body).problem["code"] for body in (b"{", b'{"max_checks": 1}', b"{}", b"")]

    assert found == ["bad_request", "message_illegal", "transaction_not_found", "transaction_not_found"]


def test_a_request_that_is_too_deep_is_refused(wire: Wire) -> None:
    found = wire.call("POST", "/v1/bulk", b'{"operations": ' + b"[" * 100_000).problem

    assert (found["status"], found["code"]) == (400, "bad_request")


def test_a_caller_shows_a_key_that_is_known(wire: Wire, orders: str) -> None:
    message = {"topic": orders, "body": "order 1"}

    anonymous = Wire(wire.url, None).post("/v1/messages", message)
    stranger = Wire(wire.url, "mq_stranger").post("/v1/messages", message)

    assert anonymous.problem == problem(
        401, "unauthenticated", "No API key: send the header `Authorization: Bearer <api key>`."
    )
    assert stranger.problem == problem(
        401,
        "unauthenticated",
        "The API key is unknown, revoked or expired: create a new key at /v1/api-keys.",
    )
    assert anonymous.headers["www-authenticate"] == "Bearer"


def test_an_answer_bears_the_id_of_its_request(wire: Wire, orders: str) -> None:
    message = {"topic": orders, "body": "order 1"}

    named = wire.post("/v1/messages", message, {"X-Request-Id": "order-1"})
    refused = wire.post("/v1/messages", {}, {"X-Request-Id": "order-2"})
    unnamed = [wire.post("/v1/messages", message).headers["x-request-id"] for _ in range(2)]

    assert [named.headers["x-request-id"], refused.headers["x-request-id"]] == ["order-1", "order-2"]
    assert len(set(unnamed)) == 2
