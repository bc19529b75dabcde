"""Endpoints of producer groups as producers and operators register them."""

import pytest
from standardwebhooks import Webhook

from tests.broker.endpoints import ProducerEndpoint, says
from tests.broker.wire import Document, problem
from tests.control.operators import Operator, illegal

URL = "http://127.0.0.1:9/checks"


@pytest.fixture
def endpoints(operator: Operator, shop: str) -> str:
    """The path of a group's endpoints."""
    operator.put(f"/v1/producer-groups/{shop}")
    return f"/v1/producer-groups/{shop}/endpoints"


def verified(endpoint: ProducerEndpoint, secret: str) -> Document:
    """What the endpoint was asked last, if this secret signed it."""
    asked = endpoint.asked[-1]
    document: Document = Webhook(secret).verify(asked.body, {k.lower(): v for k, v in asked.headers.items()})
    return document


def test_registering_shows_the_secret_once(operator: Operator, endpoints: str, shop: str) -> None:
    answer = operator.make(endpoints, url=URL)

    assert answer.status == 201
    secret = answer.document.pop("secret")
    assert secret.startswith("whsec_")
    assert {**answer.document, "id": ..., "created_at": ...} == {
        "id": ...,
        "producer_group": shop,
        "url": URL,
        "max_batch": 1,
        "timeout_seconds": 5.0,
        "concurrency": 16,
        "state": "healthy",
        "failures": 0,
        "open_until": None,
        "last_failure": None,
        "last_failure_at": None,
        "last_success_at": None,
        "last_answer": None,
        "last_answer_at": None,
        "void_answers": 0,
        "void_since": None,
        "rotated_at": None,
        "created_at": ...,
    }
    assert operator.reads(f"{endpoints}/{answer.document['id']}") == answer.document
    assert operator.reads(endpoints) == {"results": [answer.document], "next": None}


def test_registering_a_url_again_changes_the_endpoint_that_is_there(operator: Operator, endpoints: str) -> None:
    first = operator.make(endpoints, url=URL, timeout_seconds=2)

    again = operator.make(endpoints, url=URL, max_batch=50)

    assert again.status == 200
    assert "secret" not in again.document
    assert again.document["id"] == first.document["id"]
    assert (again.document["timeout_seconds"], again.document["max_batch"]) == (2.0, 50)


def test_an_endpoint_can_bring_its_own_secret(operator: Operator, endpoints: str) -> None:
    secret = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    made = operator.make(endpoints, url=URL, secret=secret)
    again = operator.make(endpoints, url=URL, secret=secret)

    assert (made.document["secret"], again.document["secret"]) == (secret, secret)
    assert again.document["rotated_at"] is None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "url: it is missing."),
        ({"url": "ftp://example.com/"}, "The URL 'ftp://example.com/' does not begin with http:// or https://."),
        (
            {"url": "http://10.1.2.3/"},
            "The URL 'http://10.1.2.3/' may not be called: 10.1.2.3 is a private address. "
            "Use a public address, or list its network in WEBHOOK_ALLOWED_NETWORKS.",
        ),
        (
            {"url": "http://169.254.169.254/latest/meta-data"},
            "The URL 'http://169.254.169.254/latest/meta-data' may not be called: 169.254.169.254 is a link-local "
            "address. Use a public address, or list its network in WEBHOOK_ALLOWED_NETWORKS.",
        ),
        ({"url": URL, "max_batch": 0}, "max_batch: it is below 1."),
        ({"url": URL, "timeout_seconds": 61}, "timeout_seconds: it is above 60."),
        ({"url": URL, "timeout_seconds": "5"}, "timeout_seconds: it is not a number."),
        ({"url": URL, "concurrency": 1001}, "concurrency: it is above 1000."),
        (
            {"url": URL, "secret": "hush"},
            "The secret is not whsec_ followed by the base64 of 24 to 64 bytes. Leave it out to have one made.",
        ),
        (
            {"url": URL, "state": "healthy"},
            "There is no field state here: the fields are secret, url, max_batch, timeout_seconds, concurrency.",
        ),
    ],
)
def test_a_bad_field_is_named_with_what_is_wrong(
    operator: Operator, endpoints: str, fields: dict[str, object], sentence: str
) -> None:
    assert illegal(operator.make(endpoints, **fields)) == sentence
    assert operator.reads(endpoints)["results"] == []


def test_put_changes_what_is_given(operator: Operator, endpoints: str) -> None:
    made = operator.make(endpoints, url=URL).document
    path = f"{endpoints}/{made['id']}"

    changed = operator.put(path, url="http://127.0.0.1:9/other", concurrency=3)

    assert changed.status == 200
    assert "secret" not in changed.document
    assert (changed.document["url"], changed.document["concurrency"]) == ("http://127.0.0.1:9/other", 3)
    assert illegal(operator.put(path, url="http://192.168.1.1/")).startswith("The URL 'http://192.168.1.1/' may not be")
    assert operator.reads(path) == changed.document


def test_two_endpoints_of_a_group_never_share_a_url(operator: Operator, endpoints: str, shop: str) -> None:
    operator.make(endpoints, url=URL)
    other = operator.make(endpoints, url="http://127.0.0.1:9/other").document

    refused = operator.put(f"{endpoints}/{other['id']}", url=URL)

    assert illegal(refused) == (
        f"The producer group {shop} already has another endpoint at {URL!r}: change the other endpoint instead."
    )


def test_a_deleted_or_unknown_endpoint_is_not_found(operator: Operator, endpoints: str, shop: str) -> None:
    made = operator.make(endpoints, url=URL).document
    path = f"{endpoints}/{made['id']}"

    assert operator.delete(path).status == 204

    sentence = f"The producer group {shop} has no endpoint {made['id']}: GET {endpoints} lists them."
    for answer in (operator.get(path), operator.put(path), operator.delete(path), operator.make(f"{path}/test")):
        assert answer.problem == problem(404, "not_found", sentence)


def test_a_group_cannot_reach_the_endpoints_of_another(operator: Operator, endpoints: str, shop: str) -> None:
    made = operator.make(endpoints, url=URL).document
    operator.put(f"/v1/producer-groups/{shop}-2")

    assert operator.get(f"/v1/producer-groups/{shop}-2/endpoints/{made['id']}").status == 404


def test_endpoints_are_listed_in_the_order_of_registration(operator: Operator, endpoints: str) -> None:
    urls = [f"http://127.0.0.1:9/{number}" for number in range(3)]
    for url in urls:
        operator.make(endpoints, url=url)

    assert [endpoint["url"] for endpoint in operator.walks(endpoints)] == urls


def test_a_trial_sends_a_signed_check_about_nothing(
    operator: Operator, endpoints: str, shop: str, endpoint: ProducerEndpoint
) -> None:
    made = operator.make(endpoints, url=endpoint.url).document

    trial = operator.make(f"{endpoints}/{made['id']}/test").document

    assert {**trial, "latency_ms": ...} == {
        "ok": True,
        "outcome": "answered",
        "status": 200,
        "latency_ms": ...,
        "reason": "The endpoint answered 200.",
    }
    assert 0 < trial["latency_ms"] < 5000
    assert verified(endpoint, made["secret"]) == {
        "type": "transaction.check",
        "producer_group": shop,
        "transactions": [],
    }


def test_a_trial_says_why_a_check_would_decide_nothing(
    operator: Operator, endpoints: str, endpoint: ProducerEndpoint
) -> None:
    reachable = operator.make(endpoints, url=endpoint.url).document
    unreachable = operator.make(endpoints, url=URL).document
    endpoint.replies(says(500), says(200))

    def trial(of: Document) -> tuple[bool, str, int | None, str]:
        found = operator.make(f"{endpoints}/{of['id']}/test").document
        return found["ok"], found["outcome"], found["status"], found["reason"]

    assert trial(reachable) == (
        False,
        "answered",
        500,
        "The endpoint answered 500. A check's answer has the status 200.",
    )
    assert trial(reachable) == (
        False,
        "answered",
        200,
        'The endpoint answered 200, but not with JSON {"results": [...]}: a check would decide nothing.',
    )
    ok, outcome, status, reason = trial(unreachable)
    assert (ok, outcome, status) == (False, "refused", None)
    assert reason.startswith("No connection: ")
    assert operator.reads(f"{endpoints}/{unreachable['id']}")["state"] == "healthy"


def test_after_a_rotation_both_secrets_sign(operator: Operator, endpoints: str, endpoint: ProducerEndpoint) -> None:
    made = operator.make(endpoints, url=endpoint.url).document
    path = f"{endpoints}/{made['id']}"

    rotated = operator.make(f"{path}/rotate-secret")

    assert rotated.status == 200
    assert rotated.document["secret"] != made["secret"]
    assert rotated.document["rotated_at"] is not None
    operator.make(f"{path}/test")
    assert verified(endpoint, rotated.document["secret"]) == verified(endpoint, made["secret"])


def test_a_rotation_refuses_a_secret_that_cannot_sign(operator: Operator, endpoints: str) -> None:
    made = operator.make(endpoints, url=URL).document

    refused = operator.make(f"{endpoints}/{made['id']}/rotate-secret", secret="whsec_short")

    assert illegal(refused).startswith("The secret is not whsec_ followed by the base64 of 24 to 64 bytes.")
    assert operator.reads(f"{endpoints}/{made['id']}")["rotated_at"] is None
