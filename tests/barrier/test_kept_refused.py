"""What the broker will never take is not kept; a kept row that it refuses is set apart, and logged once.

Queue 9 of a topic with 4 queues is what only the broker knows: it is kept, and refused later.
"""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from mqbroker_client import Admin, Broker, BrokerError, Consumer
from mqbroker_client.barrier.table import KeptTransaction

from tests.barrier import keeping
from tests.barrier.conftest import place_of
from tests.barrier.keeping import AWAY, BINDINGS, PAIRS, Shop
from tests.barrier.never_taken import NEVER_TAKEN, Sending
from tests.barrier.places import Place
from tests.barrier.test_django import command, told_by
from tests.broker.characters import bodies, name
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.client.answers import COMMITTED, PREPARED, problem
from tests.client.servers import Answer, Asked, HangUp, scripted
from tests.client.test_coalescing import bulk_of

each_binding_and_place = pytest.mark.parametrize(
    ("binding", "place"), PAIRS, indirect=["place"], ids=["-".join(pair).replace(" ", "_") for pair in PAIRS]
)


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "place" in request.fixturenames:
        request.getfixturevalue("place").run("DELETE FROM mqbroker_barrier")


def to_queue_9(topic: str, body: bytes) -> list[Sending]:
    return [(topic, body, {"queue_id": 9})]


@each_binding_and_place
def test_what_the_broker_will_never_take_rolls_back_while_it_is_away(place: Place, binding: str) -> None:
    raised = {}
    with BINDINGS[binding](place, AWAY) as shop:
        shop.buy(name("kept"), [(place.topic, b"1", {})])
        for case, (_, sendings) in NEVER_TAKEN.items():
            with pytest.raises(BrokerError) as refused:
                shop.buy(case, sendings)
            raised[case] = type(refused.value).__name__

    assert raised == {case: kind for case, (kind, _) in NEVER_TAKEN.items()}
    assert not place.orders() & set(NEVER_TAKEN)
    assert keeping.kept(place) == [(None,)]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_the_first_transaction_that_finds_the_broker_away_is_held_to_its_limits(place: Place) -> None:
    with keeping.threaded(place, AWAY) as shop, pytest.raises(BrokerError, match=r"tags 'a\|b' cannot be used"):
        shop.buy(name("order"), [(place.topic, b"1", {"tags": "a|b"})])

    assert keeping.kept(place) == []


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_size_that_the_broker_has_taken_is_kept_though_it_is_above_the_default(place: Place) -> None:
    five_megabytes: list[Sending] = [("orders", b"1" * 5_000_000, {})]
    with (
        scripted(PREPARED, COMMITTED, HangUp()) as server,
        keeping.threaded(place, Broker(server.url, API_KEY)) as shop,
    ):
        for _ in range(2):
            shop.buy(name("order"), five_megabytes)

    assert keeping.kept(place) == [(None,)]


@each_binding_and_place
def test_a_row_that_is_refused_is_set_apart_and_said_once_and_others_are_sent(
    place: Place, binding: str, broker: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    topic = name("orders")
    refused, taken = name("refused"), name("taken")
    with BINDINGS[binding](place, AWAY) as shop:
        shop.buy(refused, to_queue_9(topic, refused.encode()))
        shop.buy(taken, [(topic, taken.encode(), {})])
    with BINDINGS[binding](place, broker.client()) as shop, caplog.at_level(logging.WARNING, "mqbroker_client.barrier"):
        sent = [shop.outbox.kept.send() for _ in range(3)]

    reason = f"queue_illegal (422): The topic {topic} has no queue 9: its queues are 0 to 3."
    assert sent == [1, 0, 0]
    assert keeping.kept(place) == [(reason,)]
    assert [record.levelname for record in caplog.records if reason in record.getMessage()] == ["ERROR"]
    assert received(broker, topic) == [taken.encode()]


@each_binding_and_place
def test_an_operator_lists_sends_and_drops_what_is_set_apart(place: Place, binding: str, broker: RunningBroker) -> None:
    topic = name("orders")
    with BINDINGS[binding](place, AWAY) as shop:
        for body in (b"dropped", b"sent"):
            shop.buy(name("order"), to_queue_9(topic, body))
    with BINDINGS[binding](place, broker.client()) as shop:
        shop.outbox.kept.send()
        dropped, sent = listed(shop, binding)
        assert (dropped.topics, dropped.messages, (dropped.refused or "").split()[0]) == ((topic,), 1, "queue_illegal")
        assert drop(shop, binding, dropped) == 1
        Admin(broker.client()).create_topic(topic, queues=12)
        assert send_again(shop, binding) == [sent.transaction_id]
        assert listed(shop, binding) == []

    assert received(broker, topic) == [b"sent"]


def listed(shop: Shop, binding: str) -> list[KeptTransaction]:
    kept = shop.outbox.kept
    return kept.transactions() if binding == "threads" else asyncio.run(kept.transactions_async())


def drop(shop: Shop, binding: str, one: KeptTransaction) -> int:
    kept, ids = shop.outbox.kept, [one.transaction_id]
    return kept.drop(ids) if binding == "threads" else asyncio.run(kept.drop_async(ids))


def send_again(shop: Shop, binding: str) -> list[UUID]:
    kept = shop.outbox.kept
    found = kept.send_again() if binding == "threads" else asyncio.run(kept.send_again_async())
    return found.sent


def received(broker: RunningBroker, topic: str) -> list[bytes]:
    return bodies(received_until_empty(Consumer(broker.client(), name("coupons")), topic))


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_row_that_cannot_be_read_is_set_apart_and_holds_up_no_other(place: Place, broker: RunningBroker) -> None:
    topic = name("orders")
    with keeping.threaded(place, AWAY) as shop:
        for body in (b"torn", b"whole"):
            shop.buy(name("order"), [(topic, body, {})])
    place.run("UPDATE mqbroker_barrier SET messages = '[{\"topic\":' WHERE messages LIKE '%torn%'")
    with keeping.threaded(place, broker.client()) as shop:
        assert shop.outbox.kept.send() == 1

    [(reason,)] = keeping.kept(place)
    assert reason.startswith("its row cannot be read: JSONDecodeError")
    assert received(broker, topic) == [b"whole"]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_gateway_that_takes_no_large_request_gets_kept_messages_one_by_one(place: Place) -> None:
    def gateway(asked: Asked) -> Answer:
        if asked.path == "/v1/bulk":
            return Answer(413, b"<html><title>413 Request Entity Too Large</title></html>", {"Server": "nginx"})
        if asked.path.endswith("/end"):
            return COMMITTED
        return Answer(413, b"") if asked.body["body"] == "large" else PREPARED

    with keeping.threaded(place, AWAY) as shop:
        for body in (b"large", b"small"):
            shop.buy(name("order"), [("orders", body, {})])
    with scripted(gateway) as server, keeping.threaded(place, Broker(server.url, API_KEY)) as shop:
        assert shop.outbox.kept.send() == 1

    [(reason,)] = keeping.kept(place)
    assert "a gateway takes no request of this size" in reason


@pytest.mark.parametrize("place", ["read committed", "mariadb", "sqlite"], indirect=True)
def test_a_reason_that_is_no_text_of_a_database_is_kept_escaped(place: Place) -> None:
    with keeping.threaded(place, AWAY) as shop:
        shop.buy(name("order"), [("orders", b"1", {})])
    with (
        scripted(lambda _: bulk_of([problem(422, "message_illegal", "A \x00, and \udcff.")])) as server,
        keeping.threaded(place, Broker(server.url, API_KEY)) as shop,
    ):
        assert shop.outbox.kept.send() == 0

    assert keeping.kept(place) == [(r"message_illegal (422): A \x00, and \udcff.",)]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "answer",
    [
        problem(401, "unauthenticated", "Unknown key."),
        problem(404, "not_found", "There is no /v1/v1/bulk: /docs lists the paths."),
        Answer(404, b"default backend - 404"),
        Answer(301, b"", {"Location": "https://shop.example/"}),
    ],
    ids=["a wrong key", "a wrong path", "another server", "a redirect"],
)
def test_a_wrong_key_or_address_sets_nothing_apart_and_is_said_once(
    place: Place, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    with keeping.threaded(place, AWAY) as shop:
        for _ in range(3):
            shop.buy(name("order"), [("orders", b"1", {})])
    with (
        scripted(answer) as server,
        keeping.threaded(place, Broker(server.url, API_KEY)) as shop,
        caplog.at_level(logging.WARNING, "mqbroker_client.barrier"),
    ):
        caplog.clear()
        assert [shop.outbox.kept.send() for _ in range(3)] == [0, 0, 0]

    assert keeping.kept(place) == [(None,)] * 3
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_row_at_which_the_broker_fails_waits_and_holds_up_no_other(place: Place) -> None:
    def failing(asked: Asked) -> Answer:
        return bulk_of(
            problem(500, "internal_error", "It is in the log.")
            if operation.get("body") == "1"
            else (PREPARED if operation["op"] == "half" else COMMITTED)
            for operation in asked.body["operations"]
        )

    with keeping.threaded(place, AWAY) as shop:
        for body in (b"1", b"2"):
            shop.buy(name("order"), [("orders", body, {})])
    with scripted(failing) as server, keeping.threaded(place, Broker(server.url, API_KEY)) as shop:
        assert shop.outbox.kept.send() == 1

    assert keeping.kept(place) == [(None,)]


@pytest.fixture(params=["read committed", pytest.param("mariadb", marks=pytest.mark.long), "sqlite"])
def django_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database with the tables of a Django project."""
    yield from place_of(request.param, request, tmp_path, "django")


def test_django_keeps_nothing_that_is_never_taken_and_its_command_shows_sends_and_drops(
    django_place: Place, broker: RunningBroker
) -> None:
    raised, orders = told_by(django_place, "http://127.0.0.1:1", "never_taken", ON_UNAVAILABLE="keep")
    assert raised == {case: kind for case, (kind, _) in NEVER_TAKEN.items()}
    assert orders == ["dropped", "sent"]

    away = command(django_place, "http://127.0.0.1:1", "kept", "send")
    assert "CommandError: What is kept waits: unreachable: no answer from http://127.0.0.1:1" in away.stderr
    refused = command(django_place, broker.url, "kept", "send")
    assert "CommandError: 2 are refused: mend the reason and send again, or drop them." in refused.stderr
    first, _ = command(django_place, broker.url, "kept").stdout.splitlines()
    assert f"  messages: 1 to {django_place.topic}, " in first
    assert first.endswith(
        f"refused: queue_illegal (422): The topic {django_place.topic} has no queue 9: its queues are 0 to 3."
    )
    assert command(django_place, broker.url, "kept", "drop", first.split()[0]).stdout == (
        "1 of 1 transactions were dropped.\n"
    )
    Admin(broker.client()).create_topic(django_place.topic, queues=12)
    assert command(django_place, broker.url, "kept", "send", "--refused").stdout == "1 transactions were sent.\n"
    assert command(django_place, broker.url, "kept").stdout == "Nothing is kept.\n"
    assert received(broker, django_place.topic) == [b"sent"]
