"""Promises of the door: who may come in, and who may do what inside."""

import subprocess
import sys

import pytest

from tests.console.conftest import ROOT, environment, manage
from tests.console.operators import Operator
from tests.console.rows import Broker

PAGES = (
    "",
    "transactions/pending/",
    "transactions/discarded/",
    "transactions/ended/",
    "find/",
    "find/suggestions/?q=topic:",
    "messages/0190f7c2-0000-7000-8000-000000000000/",
    "transactions/0190f7c2-0000-7000-8000-000000000000/",
    "producer-groups/",
    "topics/",
    "topics/SCHEDULE_TOPIC_XXXX/",
    "delays/",
    "consumer-groups/",
    "dead-letters/",
    "subscriptions/",
    "cells/",
    "system/",
    "store/segment/",
    "api-keys/",
    "users/",
)


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_is_sent_to_the_sign_in_page(stranger: Operator, path: str) -> None:
    page = stranger.sees(path)

    assert page.address.startswith(f"{stranger.console}/console/login/?next=")
    assert "mqbroker console" in page.text


@pytest.mark.parametrize("path", [path for path in PAGES if "0190" not in path])
def test_every_page_of_an_empty_broker_can_be_seen(broker: Broker, ada: Operator, path: str) -> None:
    page = ada.sees(path)

    assert (page.status, page.address) == (200, f"{ada.console}/console/{path}")


def test_a_wrong_password_is_refused(stranger: Operator) -> None:
    stranger.sees("login/")
    token = next(cookie.value or "" for cookie in stranger.cookies if cookie.name == "csrftoken")

    page = stranger.sees("login/", username="ada", password="wrong", csrfmiddlewaretoken=token)

    assert "Please enter the correct username and password" in page.text
    assert stranger.sees("").address.startswith(f"{stranger.console}/console/login/")


def test_only_an_admin_manages_users(ada: Operator, bob: Operator) -> None:
    assert "bob" in ada.sees("users/").text
    assert "Users" in ada.sees("").links

    assert bob.sees("users/").status == 403
    assert "Users" not in bob.sees("").links


def test_a_viewer_reads_everything_else(broker: Broker, bob: Operator) -> None:
    assert [bob.sees(path).status for path in ("", "transactions/pending/", "api-keys/", "store/segment/")] == [
        200,
        200,
        200,
        200,
    ]


def test_the_configuration_is_not_changed_here(broker: Broker, ada: Operator) -> None:
    topic = broker.topic("orders")

    assert ada.sees("store/topic/add/").status == 403
    assert ada.sees(f"store/topic/{topic}/delete/").status == 403
    page = ada.sees(f"store/topic/{topic}/change/")
    assert "orders" in page.text
    assert 'name="queues"' not in page.html


def test_a_key_shows_its_name_scopes_hint_and_expiry_and_never_more(broker: Broker, ada: Operator) -> None:
    broker.api_key("order-service", hint="mq_7Qd…x2", scopes=["produce:orders", "manage"], digest=b"\xab" * 32)

    page = ada.sees("api-keys/")

    assert "order-service" in page.text
    assert "mq_7Qd…x2" in page.text
    assert "produce:orders, manage" in page.text
    assert "never" in page.text
    assert "igest" not in page.html
    assert "\\xab" not in page.html


def test_a_forgotten_password_is_changed_by_the_command_that_the_sign_in_page_names(
    database: str, console: str, stranger: Operator
) -> None:
    assert "./mq manage changepassword admin" in stranger.sees("login/").text
    user = 'from django.contrib.auth.models import User; User.objects.create_superuser("eve", password="forgotten")'
    manage(database, "shell", "--verbosity", "0", "--command", user)

    # A session of its own has no terminal: the passwords are read from stdin.
    subprocess.run(
        [sys.executable, "manage.py", "changepassword", "eve"],
        cwd=ROOT,
        env=environment(database),
        input="another one\n" * 2,
        text=True,
        capture_output=True,
        check=True,
        start_new_session=True,
    )

    assert Operator.signed_in(console, "eve", "another one")
