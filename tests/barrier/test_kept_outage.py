"""A broker that hangs costs the customers of a process that keeps little: one transaction of each pause asks it."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mqbroker_client import Broker, BrokerError
from mqbroker_client.barrier.outage import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, PROBE_RETRY, Outage
from mqbroker_client.core.retries import HALF_RETRY

from tests.barrier import keeping
from tests.barrier.keeping import BINDINGS, PAIRS
from tests.barrier.places import Place
from tests.broker.characters import name
from tests.broker.running import API_KEY
from tests.client.answers import COMMITTED, PREPARED, problem
from tests.client.servers import Answer, HangUp, Silence, Step, scripted

THREADS = 8
# Longer than the 3 s that a first transaction asks, and a pause with a transaction that asks behind it.
TRADE_SECONDS = 6.0
# SQLite has one writer at a time.
SERVERS = ["read committed", pytest.param("mariadb", marks=pytest.mark.long)]
HTML = {"Server": "nginx", "Content-Type": "text/html"}


@pytest.mark.chaos
@pytest.mark.parametrize("place", SERVERS, indirect=True)
def test_while_a_broker_hangs_one_transaction_at_a_time_waits_for_it(place: Place) -> None:
    over = time.monotonic() + TRADE_SECONDS

    def trade(shop: keeping.Shop) -> list[float]:
        took = []
        while time.monotonic() < over:
            began = time.monotonic()
            shop.buy(name("order"), [(place.topic, b"1", {})])
            took.append(time.monotonic() - began)
            time.sleep(0.05)
        return took

    with (
        scripted(Silence()) as server,
        keeping.threaded(place, Broker(server.url, API_KEY), THREADS) as shop,
        ThreadPoolExecutor(THREADS) as customers,
    ):
        took = [
            one for customer in [customers.submit(trade, shop) for _ in range(THREADS)] for one in customer.result()
        ]
    place.run("DELETE FROM mqbroker_barrier")

    # The first of each thread found it out together. Afterwards there is one for 1 s and 2 s of pause.
    slow = [seconds for seconds in took if seconds >= PROBE_RETRY.seconds * 0.9]
    assert THREADS <= len(slow) <= THREADS + 2, sorted(took)[-2 * THREADS :]


def test_the_pauses_between_two_that_ask_grow_and_end_with_the_first_answer() -> None:
    now = 0.0
    outage = Outage(lambda: now)
    assert [outage.turn() for _ in range(3)] == [HALF_RETRY] * 3
    assert [outage.goes_on(HALF_RETRY) for _ in range(3)] == [True, False, False]

    pauses = []
    for _ in range(7):
        began = now
        while (asks := outage.turn()) is None:
            now += 0.25
        assert (asks, outage.turn()) == (PROBE_RETRY, None)
        outage.goes_on(asks)
        pauses.append(now - began)
    assert pauses == [FIRST_PAUSE_SECONDS, 2, 4, 8, 16, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]

    outage.is_over()
    assert outage.turn() is HALF_RETRY


def test_a_process_that_dies_or_fails_while_it_asks_leaves_the_turn_to_the_next() -> None:
    now = 0.0
    outage = Outage(lambda: now)
    outage.goes_on(HALF_RETRY)
    now = FIRST_PAUSE_SECONDS
    assert outage.turn() is PROBE_RETRY  # and is not heard of again
    now += PROBE_RETRY.seconds + FIRST_PAUSE_SECONDS

    assert outage.turn() is PROBE_RETRY


ANSWERS: dict[str, tuple[Step, bool]] = {
    "no answer": (HangUp(), True),
    "429 of the broker": (problem(429, "rate_limited", "Slower."), True),
    "503 of the broker": (problem(503, "system_busy", "The queue is full."), True),
    "500 of the broker": (problem(500, "internal_error", "It is in the log."), True),
    "408 of a gateway": (Answer(408, b"<html>", HTML), True),
    "500 of a gateway": (Answer(500, b"<html>", HTML), True),
    "502 of a gateway": (Answer(502, b"<html>", HTML), True),
    "504 of a gateway": (Answer(504, b"<html>", HTML), True),
    "520 of a gateway": (Answer(520, b"<html>", HTML), True),
    "401 of the broker": (problem(401, "unauthenticated", "Unknown key."), False),
    "403 of the broker": (problem(403, "no_permission", "The key lacks produce:orders."), False),
    "404 of the broker": (problem(404, "topic_not_exist", "There is no topic orders."), False),
    "413 of the broker": (problem(413, "message_too_large", "The body has 9 bytes."), False),
    "422 of the broker": (problem(422, "topic_illegal", "topic 'a b' is no topic name."), False),
    "200 of another server": (Answer(200, b"<html>Log in</html>", HTML), False),
    "301 of a proxy": (Answer(301, b"", {"Location": "/elsewhere"}), False),
    "401 of a gateway": (Answer(401, b"<html>", HTML), False),
    "404 of another server": (Answer(404, b"<html>", HTML), False),
    "413 of a gateway": (Answer(413, b"<html>", HTML), False),
}


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("answer", "is_kept"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_keeps_or_rolls_back_as_the_table_says(place: Place, answer: Step, is_kept: bool) -> None:
    place.run("DELETE FROM mqbroker_barrier")
    order_id = name("order")
    raised = ""
    with scripted(answer) as server, keeping.threaded(place, Broker(server.url, API_KEY)) as shop:
        try:
            shop.buy(order_id, [("orders", b"1", {})])
        except BrokerError as error:
            raised = str(error)

    assert (order_id in place.orders(), keeping.kept(place) == [(None,)], not raised) == (is_kept,) * 3, raised


@pytest.mark.parametrize(("binding", "place"), PAIRS, indirect=["place"], ids=lambda part: part.replace(" ", "_"))
def test_the_transaction_after_the_first_answer_is_stored_at_once(place: Place, binding: str) -> None:
    """The first one is kept, the next ones within the pause too, and one behind it finds the broker there."""
    place.run("DELETE FROM mqbroker_barrier")

    def buy(shop: Any) -> None:
        shop.buy(name("order"), [("orders", b"1", {})])

    with (
        scripted(HangUp(), HangUp(), HangUp(), PREPARED, COMMITTED) as server,
        BINDINGS[binding](place, Broker(server.url, API_KEY)) as shop,
    ):
        now = time.monotonic()
        shop.outbox.steps.outage.clock = lambda: now
        for _ in range(3):
            buy(shop)
        assert (len(server.asked), len(keeping.kept(place))) == (3, 3)
        shop.outbox.steps.outage.clock = lambda: time.monotonic() + FIRST_PAUSE_SECONDS
        buy(shop)
        server.wait_for(requests=5)
    place.run("DELETE FROM mqbroker_barrier")

    assert [asked.path.rpartition("/")[2] for asked in server.asked[3:5]] == ["transactions", "end"]
