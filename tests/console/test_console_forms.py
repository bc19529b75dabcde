"""Forms that strangers do not finish close no form of an operator."""

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.console.conftest import PASSWORD, forget_attempts
from tests.console.operators import Operator

FORMS = 220
# Of a form that has one byte more.
SENT = 60_000


@pytest.fixture
def unfinished(console: str) -> Iterator[None]:
    """More unfinished forms of strangers than there is room for."""
    place = urlsplit(console)
    head = f"POST /console/login/ HTTP/1.1\r\nHost: broker\r\nContent-Length: {SENT + 1}\r\n\r\n"
    with contextlib.ExitStack() as callers:
        for _ in range(FORMS):
            caller = callers.enter_context(socket.create_connection((place.hostname, place.port), timeout=120))
            # Those for which there is no room are closed.
            with contextlib.suppress(ConnectionError):
                caller.sendall(head.encode() + b"x" * SENT)
        yield


@pytest.mark.usefixtures("unfinished")
def test_a_signed_in_operator_changes_something_meanwhile(ada: Operator) -> None:
    ada.sees("")

    assert ada.posts("password_change/", {"old_password": "wrong"}).status == 200


@pytest.mark.usefixtures("unfinished")
def test_an_operator_signs_in_meanwhile(console: str, database: str) -> None:
    forget_attempts(database)

    assert "sign in" not in Operator.signed_in(console, "oda", PASSWORD).sees("").text.lower()
