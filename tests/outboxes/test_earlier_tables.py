"""A table that an earlier version of docs/sql.md made is drained, is named by the doctor, and can be renewed."""

import json
import re
import subprocess
from pathlib import Path

import psycopg
import pytest

from mqbroker.embedded import commands
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.outboxes.conftest import Shop, table
from tests.outboxes.roles import PAGE

EARLIER = Path(__file__).with_name("earlier.sql")
ROWS = 12_000


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """A shop whose outbox is of the earlier page."""
    with psycopg.connect(shop.url, autocommit=True) as session:
        session.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        session.execute(EARLIER.read_text().encode())
    shop.register()
    return shop


def renewal() -> str:
    """The statements of the page that renew a table."""
    _, _, behind = PAGE.read_text().partition("### A table that an earlier version of this page made\n")
    once = "\n".join(re.findall(r"^ {4}(.*)$", behind.partition("\n### ")[0], re.MULTILINE))
    functions = re.findall(r"^CREATE OR REPLACE FUNCTION .*?^(?:\$\$|AS .*);$", table(), re.MULTILINE | re.DOTALL)
    triggers = re.findall(r"^CREATE TRIGGER .*?;$", table(), re.MULTILINE | re.DOTALL)
    return "\n".join([once, *functions, *triggers])


def findings(broker: RunningBroker) -> dict[str, str]:
    """What the doctor finds, each with what mends it."""
    done = subprocess.run(
        commands.manage("doctor", "--json"), env=broker.environment, capture_output=True, text=True, check=False
    )
    return {found["what"]: found["mend"] for found in map(json.loads, done.stdout.splitlines())}


def is_outdated(shop: Shop) -> bool:
    """Whether the broker knows the table as one of an earlier page."""
    with psycopg.connect(shop.broker.database_url) as session:
        row = session.execute("SELECT outdated FROM outbox WHERE name = %s", [shop.name]).fetchone()
    return row == (True,)


def sends_in_order(shop: Shop, words: str) -> None:
    """Rows of one key arrive in the order of their commits."""
    for word in words.split():
        with shop.session() as session:
            session.execute("SELECT mq_send(%s, %s, sharding_key => 'seven')", [shop.topic, word])
    assert [message["body"] for message in shop.receives_all(len(words.split()))] == words.split()


def test_an_earlier_table_is_drained_and_gives_the_disk_of_its_partitions_back(shop: Shop) -> None:
    sends_in_order(shop, "first second third")
    with shop.session() as session:
        many = "INSERT INTO mqbroker_outbox (topic, body) SELECT %s, repeat('x', 400) FROM generate_series(1, %s)"
        session.execute(many, [shop.topic, ROWS])

    def turned() -> bool:
        with shop.session() as session:
            [size] = session.execute("SELECT pg_relation_size('mqbroker_outbox_0') AS bytes").fetchall()
        return bool(size["bytes"] == 0)

    eventually(lambda: shop.outbox["drained"] == ROWS + 3, within_seconds=60)
    eventually(turned, within_seconds=60)
    assert shop.outbox["failure"] is None


def test_the_doctor_names_an_earlier_table_until_it_is_renewed(shop: Shop) -> None:
    what = f"The outbox {shop.name} has the table of an earlier version"
    eventually(lambda: is_outdated(shop))
    assert "docs/sql.md" in findings(shop.broker)[what]

    with psycopg.connect(shop.url, autocommit=True) as session:
        session.execute(renewal().encode())

    sends_in_order(shop, "fourth fifth sixth")
    eventually(lambda: not is_outdated(shop))
    assert what not in findings(shop.broker)
    assert shop.outbox["failure"] is None
