"""Promises of `manage.py doctor`: it is silent on a broker in order, and names each fault with what mends it, whichever
cell it lies in.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import namedtuple_row

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.console import given_up, in_cell
from tests.console.conftest import FORGOTTEN, environment
from tests.console.in_cell import InCell
from tests.console.rows import Broker

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def examined(database: str, code: int, **more: str) -> dict[str, dict[str, Any]]:
    """The findings, by what is wrong."""
    done = forks.run(commands.manage("doctor", "--json"), environment(database) | more)
    assert done.returncode == code, done.stdout + done.stderr
    return {found["what"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.fixture
def running(broker: Broker) -> Broker:
    """A broker whose processes have just noted themselves."""
    for kind in ("web", "worker"):
        broker.insert("heartbeat", process=f"{kind} 1 at a", kind=kind, beaten_at=broker.now + timedelta(minutes=1))
    return broker


@pytest.fixture(scope="module")
def other(prepared: str) -> Iterator[str]:
    """The URL of the database of a second cell."""
    with databases.copied(prepared) as url:
        yield url


@pytest.fixture
def beside(running: Broker, other: str) -> Iterator[InCell]:
    """The same broker with a cell c1, where its topics lie."""
    with psycopg.connect(other, autocommit=True, row_factory=namedtuple_row, prepare_threshold=None) as session:
        for table in FORGOTTEN:
            session.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        in_cell.join(running.connection, session, other)
        try:
            yield InCell(session, running.now, control=running.connection)
        finally:
            in_cell.leave(running.connection)


@pytest.fixture(params=["running", "beside"])
def place(request: pytest.FixtureRequest) -> Broker:
    """The broker with one cell, and with two."""
    found: Broker = request.getfixturevalue(request.param)
    return found


def test_a_broker_in_order_has_no_finding(place: Broker, database: str) -> None:
    assert examined(database, 0) == {}


def test_what_waits_for_somebody_is_named_with_the_command_that_mends_it(place: Broker, database: str) -> None:
    orders, shop, bank = (
        place.topic("orders", queues=1),
        place.producer_group("shop"),
        place.producer_group("bank"),
    )
    place.endpoint(shop, "https://shop.example/checks", void_answers=40, last_answer="The endpoint answered 200.")
    place.endpoint(shop, "https://two.example/checks", state="disabled", last_failure="The endpoint answered 503.")
    place.half(shop, orders, b"x", timedelta(hours=4), discarded_at=place.now)
    place.half(bank, orders, b"x", timedelta(hours=1))
    place.half(place.producer_group("held", checks_paused=True), orders, b"x", timedelta(hours=1))
    letter = place.stored(orders, 0, b"x", timedelta(minutes=40))
    place.visible(letter)
    mail = place.consumer_group("mail")
    given_up.dead_letter(place, mail, place.topic("%DLQ%mail", queues=1), letter, 16, timedelta(minutes=3))
    given_up.subscription(place, "push", "push", "orders", "https://p.example", state="disabled", last_failure="410")
    place.progress(place.consumer_group("coupons", paused=True), orders, 0, 0)
    place.progress(place.consumer_group("stock"), orders, 0, 0)
    place.delayed(level=5, due_in=timedelta(minutes=-2))

    mends = {what: found["mend"] for what, found in examined(database, 1).items()}

    assert mends == {
        "1 discarded transaction": "mqb discarded, then mqb resume or mqb resolve",
        "1 dead letter of mail": "mqb redrive mail",
        "1 pending of bank cannot be asked about": "register an endpoint, or start a producer that polls",
        "1 pending of held cannot be asked about": "mqb resume-group held --checks",
        "An endpoint of shop answers, and decides nothing": "compare its answer with docs/check-back.md",
        "An endpoint of shop is disabled": "mend the server at its URL, then enable it in the console",
        "The subscription push is disabled": "mend the server at its URL, then enable it in the console",
        "Delayed messages are due and not released": "start beat and a worker, or a web process",
        "coupons is paused": "mqb resume-group coupons",
        "stock is behind": "start more consumers, or see what theirs wait for",
    }


def test_processes_that_are_gone_are_named(broker: Broker, database: str) -> None:
    broker.connection.execute("DELETE FROM heartbeat")
    broker.insert("heartbeat", process="worker 7 at a", kind="worker", beaten_at=broker.now - timedelta(minutes=1))

    found = examined(database, 1)

    assert found["No tick of beat reaches a worker"]["why"].startswith("worker 7 at a was the last")


def test_servers_that_are_away_and_settings_that_nobody_reads_are_named(running: Broker, database: str) -> None:
    more = {"REDIS_URL": "redis://127.0.0.1:1/0", "MQBROKER_TRANSACTION_CHECKS_MAX": "3", "MQBROKER_XYZZY": "1"}

    found = examined(NOWHERE, 1, **more)

    assert found["The database does not answer"]["why"].startswith("no session at 127.0.0.1:1: ")
    assert found["Redis does not answer (ConnectionError)"]["mend"] == "start it, or correct REDIS_URL"
    renamed = found["MQBROKER_TRANSACTION_CHECKS_MAX is no setting"]["mend"]
    assert renamed == "rename it to MQBROKER_TRANSACTION_CHECK_MAX, or remove it"
    assert found["MQBROKER_XYZZY is no setting"]["mend"] == "remove it; `./mq settings` lists all"
    assert len(found) == 4


@pytest.mark.parametrize(
    ("change", "back", "what", "mend"),
    [
        (
            "DELETE FROM django_migrations WHERE app = 'store' AND name = '0007_cells'",
            "INSERT INTO django_migrations (app, name, applied) VALUES ('store', '0007_cells', now())",
            "Cell c1: Migrations are not applied: store.0007_cells",
            "manage.py prepare",
        ),
        (
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            "SET default_transaction_read_only = off; ALTER DATABASE {} RESET default_transaction_read_only",
            "Cell c1: The database is read-only",
            "set the primary's URL by `cells add c1 URL`",
        ),
        (
            "UPDATE segment SET unexported_at = now()",
            "UPDATE segment SET unexported_at = NULL",
            "Cell c1: Retention dropped segments before their export (1 so far, the last one at ",
            "see the console's page System and docs/operations.md, Monitoring",
        ),
        (
            "UPDATE cell_identity SET cell_id = 7",
            "UPDATE cell_identity SET cell_id = 1",
            "The cell c1 is out of order",
            "see `cells list`",
        ),
        (
            "INSERT INTO topic (name, queues, permission) VALUES ('stray', 1, 'rw')",
            "DELETE FROM topic WHERE name = 'stray'",
            "The cell c1 is out of order",
            "see `cells list`",
        ),
    ],
)
def test_a_database_of_a_cell_that_is_out_of_order_is_named(
    beside: InCell, database: str, other: str, change: str, back: str, what: str, mend: str
) -> None:
    with altered(other, change, back):
        found = examined(database, 1)

    assert [one["mend"] for named, one in found.items() if named.startswith(what)] == [mend]


def test_a_cell_whose_server_is_gone_is_named_and_the_others_are_examined(beside: InCell, database: str) -> None:
    assert beside.control is not None
    beside.control.execute("UPDATE cell SET url = %s WHERE name = 'c1'", [NOWHERE])
    control = Broker(beside.control, beside.now)
    orders, shop = control.topic("orders", queues=1), control.producer_group("shop")
    control.half(shop, orders, b"x", timedelta(hours=4), discarded_at=control.now)

    found = examined(database, 1)

    assert {what: one["mend"] for what, one in found.items()} == {
        "The cell c1 does not answer": "start its PostgreSQL, or fail over and set its URL by `cells add NAME URL`",
        "1 discarded transaction": "mqb discarded, then mqb resume or mqb resolve",
    }


@contextmanager
def altered(database: str, change: str, back: str) -> Iterator[None]:
    """A database that is changed within the block."""
    name = sql.Identifier(database.rpartition("/")[2])
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(sql.SQL(change).format(name))
        try:
            yield
        finally:
            session.execute(sql.SQL(back).format(name))


@pytest.mark.parametrize(
    ("change", "back", "what", "mend"),
    [
        (
            "DELETE FROM django_migrations WHERE app = 'store' AND name = '0007_cells'",
            "INSERT INTO django_migrations (app, name, applied) VALUES ('store', '0007_cells', now())",
            "Migrations are not applied: store.0007_cells",
            "manage.py prepare",
        ),
        (
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            "SET default_transaction_read_only = off; ALTER DATABASE {} RESET default_transaction_read_only",
            "The database is read-only",
            "let DATABASE_URL name the primary",
        ),
        (
            "UPDATE auth_user SET is_active = false",
            "UPDATE auth_user SET is_active = true",
            "The console has no user who can sign in",
            "manage.py createsuperuser",
        ),
    ],
)
def test_a_database_that_is_not_prepared_is_named(
    running: Broker, database: str, change: str, back: str, what: str, mend: str
) -> None:
    with altered(database, change, back):
        found = examined(database, 0 if what.startswith("The console") else 1)

    assert found[what]["mend"] == mend


def test_a_finding_is_three_lines_for_people(running: Broker, database: str) -> None:
    orders = running.topic("orders", queues=1)
    running.half(running.producer_group("shop"), orders, b"x", timedelta(hours=4), discarded_at=running.now)

    done = forks.run(commands.manage("doctor"), environment(database))

    assert done.stdout == (
        "! 1 discarded transaction\n"
        "    why:  the checks brought no decision: resume or decide them\n"
        "    mend: mqb discarded, then mqb resume or mqb resolve\n"
    )
    assert done.returncode == 1
