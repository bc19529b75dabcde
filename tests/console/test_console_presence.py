"""Promises of who is connected: a group whose producers poll is in order, and a page says who asked and when."""

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import urllib3

from tests.broker.polling import eventually
from tests.console.operators import Operator
from tests.console.rows import Broker

KEY = "mqk_a-key-of-these-tests-only"


@contextmanager
def waiting(console: str, path: str, body: dict[str, object]) -> Iterator[None]:
    """A call that waits at the broker until the end of the block, again and again."""
    over = threading.Event()

    def ask() -> None:
        with urllib3.PoolManager() as pool:
            while not over.is_set():
                pool.request("POST", f"{console}/v1/{path}", json=body, headers={"Authorization": f"Bearer {KEY}"})

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in asking:
            thread.join()


@pytest.fixture
def key(broker: Broker) -> None:
    """A key that may do all, as it is kept."""
    scopes = ["manage", "produce:*", "consume:*", "read:*"]
    broker.api_key("all", KEY[-4:], scopes, hashlib.sha256(KEY.encode()).digest())


@pytest.mark.usefixtures("key")
def test_a_group_whose_producers_poll_is_asked_and_needs_no_attention(
    broker: Broker, console: str, ada: Operator
) -> None:
    half = broker.half(broker.producer_group("shop"), broker.topic("orders"), b"x", timedelta(hours=1))
    # Asked already, and not due again.
    broker.connection.execute("UPDATE half_message SET next_check_at = now() + interval '1 hour'")
    obstacle = "no endpoint is registered, and no producer polls"
    assert f"It cannot be asked about: {obstacle}." in ada.sees(f"transactions/{half}/").text
    assert "1 pending of shop cannot be asked about" in ada.sees("").text
    assert "Producers polled not for a day" in ada.sees("producer-groups/shop/").text
    assert ada.sees("producer-groups/").table("producer-groups")[0][3] == "none: no check can be sent"

    with waiting(console, "producer-groups/shop/checks/receive", {"wait_seconds": 2}):
        eventually(lambda: " over 2 connections" in ada.sees("producer-groups/shop/").text)

        page = ada.sees("producer-groups/shop/").text

        assert re.search(r"Producers polled \d+ s ago over 2 connections", page)
        assert "Its producers poll for the checks" in page
        assert ada.sees("producer-groups/").table("producer-groups")[0][3] == "healthy its producers poll"
        assert "cannot be asked about" not in ada.sees("").text
        assert "cannot be asked about" not in ada.sees(f"transactions/{half}/").text
    broker.connection.execute("UPDATE presence SET asked_at = asked_at - interval '1 minute'")
    broker.connection.execute("UPDATE presence SET process = 'a process that ended'")
    assert obstacle in ada.sees("producer-groups/shop/").text


@pytest.mark.usefixtures("key")
def test_the_page_of_a_consumer_group_says_when_its_consumers_last_asked(
    broker: Broker, console: str, ada: Operator
) -> None:
    broker.progress(broker.consumer_group("mail"), broker.topic("orders", queues=1), 0, 0)
    assert "Consumers asked not for a day" in ada.sees("consumer-groups/mail/").text

    with waiting(console, "consumer-groups/mail/receive", {"topic": "orders", "wait_seconds": 2}):
        eventually(lambda: " over 2 connections" in ada.sees("consumer-groups/mail/").text)

        assert re.search(r"Consumers asked \d+ s ago over 2 connections", ada.sees("consumer-groups/mail/").text)


@pytest.mark.usefixtures("key")
def test_groups_that_a_caller_invents_are_not_kept(broker: Broker, console: str, ada: Operator) -> None:
    broker.producer_group("shop")
    for number in range(50):
        invented = f"{console}/v1/producer-groups/invented-{number}/checks/receive"
        answer = urllib3.request("POST", invented, json={}, headers={"Authorization": f"Bearer {KEY}"})
        assert (answer.status, answer.json()["code"]) == (404, "group_not_exist")

    with waiting(console, "producer-groups/shop/checks/receive", {"wait_seconds": 2}):
        eventually(lambda: " over 2 connections" in ada.sees("producer-groups/shop/").text)

    noted = {name for (name,) in broker.connection.execute("SELECT group_name FROM presence").fetchall()}
    assert "shop" in noted
    assert not any(name.startswith("invented") for name in noted)
