"""Sources with faults: rows go on where large turns fail, and what hangs is shown and comes back."""

import psycopg
import pytest

from tests.broker.database_proxy import DatabaseProxy
from tests.broker.polling import eventually
from tests.outboxes.conftest import Shop

ROWS = 100
# As on a machine that has no time for more before the next fault.
FAILS_ABOVE = """
CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM taken) > %s THEN
        RAISE 'a fault in a large turn';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER fault AFTER DELETE ON mqbroker_outbox REFERENCING OLD TABLE AS taken
FOR EACH STATEMENT EXECUTE FUNCTION fault();
"""

FAILS = """
CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the %s fault'; END $$;
CREATE OR REPLACE TRIGGER fault AFTER DELETE ON mqbroker_outbox FOR EACH ROW EXECUTE FUNCTION fault()
"""


def test_rows_go_on_where_turns_of_many_rows_fail(shop: Shop) -> None:
    with psycopg.connect(shop.url, autocommit=True) as session:
        session.execute((FAILS_ABOVE % 40).encode())
        many = "SELECT mq_send(%s, 'x', sharding_key => 'key ' || mod(n, 5)) FROM generate_series(1, %s) AS n"
        session.execute(many, [shop.topic, ROWS])

    shop.register()

    assert len(shop.receives_all(ROWS)) == ROWS
    assert eventually(lambda: shop.outbox["drained"] == ROWS)


def test_an_outbox_fails_since_its_first_failure_until_its_rows_are_drained(shop: Shop) -> None:
    def fails(fault: str) -> str:
        """When the outbox first failed, once it fails with this fault."""
        with shop.session() as session:
            session.execute((FAILS % fault).encode())
            session.execute("SELECT mq_send(%s, %s)", [shop.topic, fault])
        eventually(lambda: f"the {fault} fault" in (shop.outbox["failure"] or ""))
        return str(shop.outbox["failed_at"])

    shop.register()
    since = fails("first")

    assert fails("second") == since
    with shop.session() as holder:
        holder.execute("SELECT FROM mqbroker_outbox_state FOR UPDATE")
        looked_at = shop.outbox["looked_at"]
        # Processes that wait for their turn look, and know nothing of the failure.
        eventually(lambda: shop.outbox["looked_at"] != looked_at)
        assert (shop.outbox["failure"] is None, shop.outbox["failed_at"]) == (False, since)
        holder.execute("DROP TRIGGER fault ON mqbroker_outbox")
    assert len(shop.receives_all(2)) == 2
    eventually(lambda: (shop.outbox["failure"], shop.outbox["failed_at"]) == (None, None))


@pytest.mark.long
def test_a_source_that_hangs_in_a_turn_is_shown_and_goes_on_once_it_answers(shop: Shop) -> None:
    with DatabaseProxy(shop.url) as proxy:
        shop.register(url=proxy.url)
        with shop.session() as session:
            session.execute("SELECT mq_send(%s, 'before')", [shop.topic])
        assert [message["body"] for message in shop.receives_all(1)] == ["before"]
        proxy.swallow(packets=True)
        with shop.session() as session:
            session.execute("SELECT mq_send(%s, 'behind the silence')", [shop.topic])

        assert eventually(lambda: shop.outbox["failure"], within_seconds=60)

        proxy.swallow(packets=False)
        assert [message["body"] for message in shop.receives_all(1)] == ["behind the silence"]
        assert eventually(lambda: shop.outbox["failure"] is None)
        shop.register(url=shop.url)
