"""Each cell has the configuration of the control, under its ids, from the answer to a change on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.broker.databases import SEND_AWAY
from tests.broker.endpoints import ProducerEndpoint
from tests.cells.installation import COPIED, Installation, rows_of
from tests.control.operators import Operator


@contextmanager
def away(url: str) -> Iterator[None]:
    """A database that takes no sessions meanwhile, as if its server were gone."""
    server = urlsplit(url)._replace(path="/mqbroker").geturl()
    name = urlsplit(url).path[1:]
    closed = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(closed.format(sql.Identifier(name), sql.SQL("false")))
        session.execute(SEND_AWAY, (name,))
        try:
            yield
        finally:
            session.execute(closed.format(sql.Identifier(name), sql.SQL("true")))


CHANGES: list[tuple[str, str, Mapping[str, Any] | None]] = [
    ("PUT", "/v1/topics/shoes", {"queues": 2}),
    ("PUT", "/v1/topics/shoes", {"queues": 8, "permission": "r"}),
    ("PUT", "/v1/topics/hats", {}),
    ("DELETE", "/v1/topics/hats", None),
    ("PUT", "/v1/producer-groups/shop", {}),
    ("PUT", "/v1/producer-groups/shop", {"max_undecided": 7}),
    ("PUT", "/v1/consumer-groups/stock", {}),
    ("PUT", "/v1/consumer-groups/stock", {"paused": True}),
    ("PUT", "/v1/subscriptions/to-stock", {"group": "stock", "topic": "shoes", "url": "http://127.0.0.1:9/"}),
    ("PUT", "/v1/subscriptions/to-stock", {"paused": True}),
    ("POST", "/v1/subscriptions/to-stock/rotate-secret", {}),
    ("DELETE", "/v1/subscriptions/to-stock", None),
    ("DELETE", "/v1/consumer-groups/stock", None),
    ("DELETE", "/v1/producer-groups/shop", None),
]


def test_each_change_of_the_configuration_is_in_every_cell_when_it_is_answered(
    installation: Installation, operator: Operator
) -> None:
    for method, path, body in CHANGES:
        before = rows_of(installation.cells["c1"])

        answer = operator.asks(method, path, body)

        assert answer.status < 300, (path, answer.document)
        assert installation.differences("c1") == {}, path
        assert rows_of(installation.cells["c1"]) != before, path


def test_what_is_made_at_its_first_use_is_in_every_cell_when_it_is_used(
    installation: Installation, operator: Operator
) -> None:
    before = rows_of(installation.cells["c1"])
    half = {"producer_group": "tailor", "topic": "coats", "body": "coat 1"}

    sent = operator.post("/v1/messages", {"topic": "capes", "body": "cape 1"})
    begun = operator.post("/v1/transactions", half)
    received = operator.post("/v1/consumer-groups/closet/receive", {"topic": "capes"})

    after = rows_of(installation.cells["c1"])
    assert [answer.status for answer in (sent, begun, received)] == [201, 201, 200]
    assert [entry["message"]["body"] for entry in received.document["messages"]] == ["cape 1"]
    assert installation.differences("c1") == {}
    assert {table for table in COPIED if len(after[table]) > len(before[table])} == {
        *("topic", "producer_group", "consumer_group", "retry_queue"),
    }


def test_a_first_use_is_refused_while_a_cell_is_away_and_what_is_known_goes_on(
    installation: Installation, operator: Operator
) -> None:
    operator.put("/v1/topics/ties")
    with away(installation.cells["c1"]):
        new = operator.post("/v1/messages", {"topic": "bow-ties", "body": "tie 1"})
        known = operator.post("/v1/messages", {"topic": "ties", "body": "tie 1"})

    assert (new.status, new.document["code"]) == (503, "cell_away")
    assert known.status == 201
    assert operator.get("/v1/topics/bow-ties").status == 404
    assert operator.post("/v1/messages", {"topic": "bow-ties", "body": "tie 1"}).status == 201
    assert installation.differences("c1") == {}


def test_an_endpoint_and_its_change_are_in_every_cell_but_not_the_health_that_another_cell_sees(
    installation: Installation, operator: Operator, endpoint: ProducerEndpoint
) -> None:
    operator.asks("PUT", "/v1/producer-groups/bakery", {})
    made = operator.asks("POST", "/v1/producer-groups/bakery/endpoints", {"url": endpoint.url}).document
    with psycopg.connect(installation.cells["c1"]) as session:
        session.execute("UPDATE endpoint SET failures = 3, state = 'disabled' WHERE id = %s", [made["id"]])

    operator.asks("PUT", "/v1/producer-groups/bakery", {"checks_paused": True})
    installation.run("sync", "c1")
    [kept] = rows_of(installation.cells["c1"])["endpoint"]
    # A change by an operator closes the circuit, in every cell.
    again = operator.make("/v1/producer-groups/bakery/endpoints", url=endpoint.url, max_batch=5)
    [changed] = rows_of(installation.cells["c1"])["endpoint"]

    assert (again.status, again.document["id"]) == (200, made["id"])
    assert (kept["failures"], kept["state"], kept["max_batch"]) == (3, "disabled", 1)
    assert (changed["failures"], changed["state"], changed["max_batch"]) == (0, "healthy", 5)


def test_a_change_is_refused_while_a_cell_is_away_and_nothing_is_made(
    installation: Installation, operator: Operator
) -> None:
    operator.asks("PUT", "/v1/topics/boots", {"queues": 2})
    with away(installation.cells["c1"]):
        made = operator.asks("PUT", "/v1/topics/gloves", {})
        changed = operator.asks("PUT", "/v1/topics/boots", {"queues": 4})
        state = installation.state("c1")

    assert [(answer.status, answer.document["code"]) for answer in (made, changed)] == [(503, "cell_away")] * 2
    assert made.document["detail"].startswith("The cell c1 is away (")
    assert state.startswith("The cell c1 is away (")
    assert operator.get("/v1/topics/gloves").status == 404
    assert operator.get("/v1/topics/boots").document["queues"] == 2
    assert operator.asks("PUT", "/v1/topics/gloves", {}).status == 201
    assert installation.differences("c1") == {}


def test_what_a_crash_left_in_a_cell_gives_way_to_the_control(installation: Installation, operator: Operator) -> None:
    with psycopg.connect(installation.cells["c1"]) as session:
        session.execute("INSERT INTO topic (id, name, queues, permission) VALUES (900000, 'scarves', 3, 'rw')")
        session.execute("INSERT INTO topic (id, name, queues, permission) VALUES (900001, 'belts', 3, 'rw')")

    assert operator.asks("PUT", "/v1/topics/scarves", {"queues": 5}).status == 201
    lag = installation.state("c1")
    repaired = installation.run("sync", "c1").stdout

    assert lag == "1 rows of configuration differ from the control's: `cells sync c1` copies them"
    assert repaired == "c1: 1 rows changed.\n"
    assert installation.differences("c1") == {}
    assert installation.state("c1") == "ready"


def test_a_process_repairs_the_copies_at_its_start(installation: Installation, operator: Operator) -> None:
    operator.asks("PUT", "/v1/topics/socks", {})
    with psycopg.connect(installation.cells["c1"]) as session:
        session.execute("DELETE FROM topic WHERE name = 'socks'")

    [web] = installation.broker.webs
    web.stop()
    web.start()
    installation.broker.wait_until_ready()

    assert installation.differences("c1") == {}
