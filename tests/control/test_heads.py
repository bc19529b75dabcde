"""HEAD: whatever can be got can be asked for its head, on both planes."""

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from tests.broker import characters
from tests.control.operators import Operator


def head(operator: Operator, path: str) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer, and what came behind its header lines until the line was closed."""
    address = urlsplit(operator.url)
    with socket.create_connection((address.hostname, address.port), timeout=120) as line:
        request = f"HEAD {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {operator.api_key}\r\n"
        line.sendall(f"{request}Connection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(line, method="GET")
        answer.begin()
        try:
            return answer, answer.read()
        except http.client.IncompleteRead as end:
            return answer, end.partial


@pytest.fixture
def order(operator: Operator) -> str:
    """The id of a message."""
    sent = operator.post("/v1/messages", {"topic": characters.name("orders"), "body": "order 1"})
    return str(sent.document["message_id"])


def test_the_head_of_a_message_is_that_of_its_get_without_the_body(operator: Operator, order: str) -> None:
    path = f"/v1/messages/{order}"
    got = operator.get(path)

    answer, body = head(operator, path)

    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.headers["Content-Length"] == got.headers["content-length"]
    assert body == b""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/topics", 200),
        ("/v1/messages/019e0000-0000-7000-8000-000000000000", 404),
        ("/v1/transactions/019e0000-0000-7000-8000-000000000000", 404),
        ("/v1/bulk", 405),
    ],
)
def test_a_head_has_the_status_of_its_get(operator: Operator, path: str, status: int) -> None:
    answer, body = head(operator, path)

    assert (answer.status, body) == (status, b"")
    assert operator.get(path).status == status
