"""The roles of docs/sql.md: who writes and who drains have the rights that the page names, and no others."""

import psycopg
import pytest

from tests.broker.polling import eventually
from tests.outboxes.conftest import Shop
from tests.outboxes.roles import Roles
from transactions.outboxes.drain import SLOT_ROWS

# TRUNCATE gives a partition a new file.
FILE_OF_THE_FIRST_PARTITION = """
SELECT pg_relation_filenode('mqbroker_outbox_0') AS file, pg_relation_size('mqbroker_outbox_0') AS bytes
"""


def test_the_rights_of_the_page_are_enough_to_send_to_drain_and_to_set_apart(shop: Shop, roles: Roles) -> None:
    with psycopg.connect(roles.url(roles.writer)) as session:
        session.execute("SELECT mq_send(%s, 'by the function', sharding_key => 'seven')", [shop.topic])
        session.execute("INSERT INTO mqbroker_outbox (topic, body) VALUES (%s, 'by INSERT')", [shop.topic])
        session.execute("SELECT mq_send('another', 'refused')")

    assert sorted(message["body"] for message in shop.receives_all(2)) == ["by INSERT", "by the function"]
    eventually(lambda: shop.outbox["refused"] == 1)
    assert shop.outbox["failure"] is None


def test_they_are_enough_to_turn_the_partitions(shop: Shop, roles: Roles) -> None:
    with shop.session() as session:
        [before] = session.execute(FILE_OF_THE_FIRST_PARTITION).fetchall()
    with psycopg.connect(roles.url(roles.writer)) as writer:
        # Twice as many as a drain needs, because a drain that begins again after a failure counts from zero.
        count = 2 * SLOT_ROWS + 1000
        rows = "INSERT INTO mqbroker_outbox (topic, body) SELECT %s, 'x' FROM generate_series(1, %s)"
        writer.execute(rows, [shop.topic, count])

    def is_truncated() -> bool:
        with shop.session() as session:
            [now] = session.execute(FILE_OF_THE_FIRST_PARTITION).fetchall()
        return bool(now["file"] != before["file"] and now["bytes"] == 0)

    eventually(lambda: shop.outbox["drained"] == count, within_seconds=60)
    eventually(is_truncated, within_seconds=60)
    assert shop.outbox["failure"] is None


@pytest.mark.parametrize(
    "statement",
    ["SELECT body FROM mqbroker_outbox", "DELETE FROM mqbroker_outbox", "UPDATE mqbroker_outbox_state SET slot = 1"],
)
def test_who_writes_may_do_nothing_else(roles: Roles, statement: str) -> None:
    with psycopg.connect(roles.url(roles.writer)) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute(statement.encode())
