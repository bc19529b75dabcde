"""Paths: what a proxy's rules let pass by its path is the call that they meant."""

import pytest

from tests.broker import characters
from tests.broker.wire import Wire

DETAIL = (
    "The path is not in its plain form: escape no letter, digit, slash or control character, write % as %25, "
    "and leave out empty parts, `.` and `..`."
)
CROOKED = [
    "/v1/%6dessages",
    "/v1/%61pi-keys",
    "/v1%2fapi-keys",
    "/v1%2Fapi-keys",
    "/v1%5capi-keys",
    "/v1\\api-keys",
    "//v1/api-keys",
    "/v1//api-keys",
    "/v1/./api-keys",
    "/v1/topics/../api-keys",
    "/v1/topics/..",
    "/v1/topics/%2e%2e/api-keys",
    "/v1/api-keys%00",
    "/v1/api-keys%0a",
    "/v1/topics/%RETRY%orders",
    "/v1/topics/orders%",
    "/v1/topics/orders%4",
    "/console/%6cogin/",
]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", CROOKED)
def test_a_path_that_is_not_in_its_plain_form_is_refused(wire: Wire, method: str, path: str) -> None:
    answer = wire.call(method, path)

    assert (answer.status, answer.problem["code"], answer.problem["detail"]) == (400, "bad_request", DETAIL)


@pytest.mark.parametrize("path", ["/v1/topics?name=%61//..", "/v1/api-keys", "/v1/api-keys/a~b", "/v1/api-keys/a%7eb"])
def test_the_plain_form_says_nothing_of_a_query_and_of_what_stands_in_a_name(wire: Wire, path: str) -> None:
    assert wire.get(path).status in (200, 404, 422)


def test_names_with_signs_are_escaped(wire: Wire) -> None:
    group = characters.name("coupons")
    wire.call("PUT", f"/v1/consumer-groups/{group}", b"{}")

    assert wire.get(f"/v1/topics/%25RETRY%25{group}").status in (200, 404)
    assert wire.get(f"/v1/topics/%25RETRY%25{group}/queues/0/messages?offset=0").status in (200, 404)
