"""Errors: every one on every path is a problem document that says the way out."""

import json

import pytest

from tests.broker.running import RunningBroker
from tests.broker.wire import problem
from tests.control.operators import Operator, illegal

NO_KEY = "No API key: send the header `Authorization: Bearer <api key>`."
UNKNOWN_KEY = "The API key is unknown, revoked or expired: create a new key at /v1/api-keys."
PATHS = (
    "/v1/topics",
    "/v1/producer-groups/shop",
    "/v1/producer-groups/shop/endpoints",
    "/v1/consumer-groups",
    "/v1/transactions",
    "/v1/transactions/none",
    "/v1/api-keys",
    "/v1/stats",
    "/v1/schema",
    "/docs",
    "/metrics",
)


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_told_without_a_key(stranger: Operator, path: str) -> None:
    answer = stranger.get(path)

    assert answer.problem == problem(401, "unauthenticated", NO_KEY)
    assert answer.headers["www-authenticate"] == "Bearer"


def test_an_unknown_key_is_no_key(broker: RunningBroker) -> None:
    answer = Operator(broker.url, "mq_guessed").get("/v1/topics")

    assert answer.problem == problem(401, "unauthenticated", UNKNOWN_KEY)


@pytest.mark.parametrize("path", ["/v1/nothing", "/nothing", "/v1/topics/", "/v1/topics/a/b"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_not_found(operator: Operator, method: str, path: str) -> None:
    answer = operator.call(method, path, b"{}")

    assert answer.problem == problem(404, "not_found", f"There is no {path}: /docs lists the paths.")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/topics/orders", "DELETE, GET, HEAD, PUT"),
        ("DELETE", "/v1/topics", "GET, HEAD"),
        ("DELETE", "/v1/transactions", "GET, HEAD, POST"),
        ("GET", "/v1/messages/batch", "POST"),
        ("PUT", "/v1/bulk", "POST"),
        ("DELETE", "/v1/transactions/none", "GET, HEAD"),
        ("OPTIONS", "/v1/consumer-groups/shop/offsets", "GET, HEAD, PUT"),
        ("GET", "/v1/consumer-groups/shop/receive", "POST"),
        ("POST", "/v1/topics/orders/queues/0/messages", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/v1/topics", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(operator: Operator, method: str, path: str, allowed: str) -> None:
    answer = operator.call(method, path)

    sentence = f"{path} has no method {method}: it has {allowed}."
    assert answer.problem == problem(405, "method_not_allowed", sentence)
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("body", [b"{", b"{'queues': 1}", b'{"queues": NaN}', b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_a_bad_request(operator: Operator, orders: str, body: bytes) -> None:
    answer = operator.call("PUT", f"/v1/topics/{orders}", body)

    assert (answer.problem["status"], answer.problem["code"]) == (400, "bad_request")
    assert answer.problem["detail"].startswith("The body is not JSON: ")
    assert operator.get(f"/v1/topics/{orders}").status == 404


@pytest.mark.parametrize("body", [b"[]", b"1", b'"queues"', b"null"])
def test_what_is_no_object_is_refused(operator: Operator, orders: str, body: bytes) -> None:
    answer = operator.call("PUT", f"/v1/topics/{orders}", body)

    assert answer.problem == problem(422, "message_illegal", "The body is not a JSON object: give one, such as {}.")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"queues": 1e999}', "queues cannot be read: "),
        (b'{"permission": "rw", "queues": [1, -1e999]}', "queues[1] cannot be read: "),
        (b'{"queues": {"a": {"b": %s}}}' % (b"9" * 5000), "A value of queues[...] is out of range: "),
        (b"1e999", "The body of the request cannot be read: "),
    ],
)
def test_a_number_that_nothing_holds_is_illegal_by_the_name_of_its_field(
    operator: Operator, orders: str, body: bytes, named: str
) -> None:
    answer = operator.call("PUT", f"/v1/topics/{orders}", body)

    assert illegal(answer).startswith(named)


def test_a_body_above_the_limit_is_too_large(operator: Operator, orders: str) -> None:
    body = b'{"queues": 1, "permission": "' + b"r" * 300_000 + b'"}'
    announced = operator.call("PUT", f"/v1/topics/{orders}", body)
    in_chunks = operator.sends_in_chunks("PUT", f"/v1/topics/{orders}", body[:200_000], body[200_000:])

    assert announced.problem == problem(
        413, "message_too_large", f"The request has {len(body)} bytes, the limit is 262144."
    )
    assert in_chunks.problem == problem(413, "message_too_large", "The request has more than 262144 bytes, the limit.")
    assert operator.get(f"/v1/topics/{orders}").status == 404


def test_a_body_that_never_ends_is_too_large_before_it_is_read_whole(operator: Operator, orders: str) -> None:
    answer = operator.sends_in_chunks("PUT", f"/v1/topics/{orders}", *[b" " * 65_536] * 100)

    assert answer.problem == problem(413, "message_too_large", "The request has more than 262144 bytes, the limit.")


def test_a_body_in_chunks_is_read(operator: Operator, orders: str) -> None:
    answer = operator.sends_in_chunks("PUT", f"/v1/topics/{orders}", b'{"queu', b'es": 7}')

    assert (answer.status, answer.document["queues"]) == (201, 7)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "nonsense", ""])
def test_a_body_is_json_whatever_it_is_called(operator: Operator, orders: str, content_type: str) -> None:
    headers = {"Content-Type": content_type, "Accept": "text/html"}

    answer = operator.call("PUT", f"/v1/topics/{orders}", b'{"queues": 7}', headers)

    assert (answer.status, answer.document["queues"]) == (201, 7)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/topics/orders", "/console/login/"])
@pytest.mark.parametrize("encoding", ["br", "identity, br", "gzip, gzip"])
def test_a_body_in_a_coding_that_is_not_understood_is_refused(operator: Operator, path: str, encoding: str) -> None:
    answer = operator.call("POST", path, b"{}", {"Content-Encoding": encoding})

    assert answer.problem == problem(
        415,
        "unsupported_media_type",
        f"The body has the Content-Encoding {encoding}: send gzip, zstd, or none.",
    )
    assert answer.headers["accept-encoding"] == "gzip, zstd"


def test_a_body_that_is_as_it_is_may_say_so(operator: Operator, orders: str) -> None:
    message = json.dumps({"topic": orders, "body": "order"}).encode()

    assert operator.call("POST", "/v1/messages", message, {"Content-Encoding": "Identity"}).status == 201


def test_every_answer_bears_the_callers_request_id(operator: Operator) -> None:
    for path in ("/v1/topics", "/v1/nothing", "/healthz"):
        answer = operator.call("GET", path, headers={"X-Request-Id": "order-42"})
        assert answer.headers["x-request-id"] == "order-42"
