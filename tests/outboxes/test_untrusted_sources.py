"""Sources that are not as the page has them, or as the broker expects: what is good flows, all else fails visibly."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.broker import poolers
from tests.broker.burdens import memory_of, wait_for_rest, watching
from tests.broker.polling import eventually
from tests.outboxes.conftest import Shop, table
from tests.outboxes.roles import Roles
from tests.outboxes.turning import PRIVATE, SOURCES

MEGABYTES = 1024 * 1024
# Of a role or a database, as some operator may have set it.
SETTINGS = {
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "search_path": "nowhere",
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "statement_timeout": "500ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "100ms",
    "row_security": "off",
    "quote_all_identifiers": "on",
    "exit_on_error": "on",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "client_min_messages": "debug5",
    "synchronous_commit": "off",
    "enable_indexscan": "off",
    "temp_file_limit": "0",
    "lc_messages": "C",
    "jit": "on",
    "jit_above_cost": "0",
}
FAILS = """
CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'a fault in the turn'; END $$;
CREATE TRIGGER fault AFTER DELETE ON mqbroker_outbox FOR EACH ROW EXECUTE FUNCTION fault()
"""
FULL_ROW = """
INSERT INTO mqbroker_outbox (topic, body, tags, keys, sharding_key, properties, deliver_at, traceparent)
VALUES (%s, 'naïve 🎉', 'new', ARRAY['a\\b', 'ü'], 'seven', '{"ä": "ö"}', '2001-02-03 04:05:06', '00-ab-cd-01')
"""


@contextlib.contextmanager
def bounded(shop: Shop, most_bytes: int) -> Iterator[None]:
    """The web processes grow by this much at most, within the block."""
    wait_for_rest(shop.broker)
    before = memory_of(shop.broker)
    with watching(before) as worst:
        yield
    grown = {pid: (worst.get(pid, size) - size) // MEGABYTES for pid, size in before.items()}
    assert all(size < most_bytes // MEGABYTES for size in grown.values()), f"MB by process: {grown}"


def sends(shop: Shop) -> None:
    """A row of now is sent, and nothing fails any more."""
    with shop.session() as session:
        session.execute(FULL_ROW, [shop.topic])
        session.execute("INSERT INTO mqbroker_outbox (topic, body_bytes) VALUES (%s, '\\x5c00ff')", [shop.topic])
    found = {message.get("tags"): message for message in shop.receives_all(2)}
    message = found["new"]
    assert (message["body"], message["keys"], message["properties"]) == ("naïve 🎉", ["a\\b", "ü"], {"ä": "ö"})
    assert (message["sharding_key"], message["traceparent"]) == ("seven", "00-ab-cd-01")
    assert found[None]["body_base64"] == "XAD/"
    assert eventually(lambda: shop.outbox["failure"] is None)


def test_nothing_counts_of_what_the_role_is_set_to(shop: Shop, roles: Roles) -> None:
    roles.set(roles.drain, SETTINGS)

    sends(shop)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_as_it_is_installed_may_stand_between(shop: Shop, tmp_path: Path, mode: str) -> None:
    with poolers.pooler(tmp_path / mode, shop.url, mode, program=poolers.debians(), size=5) as pooler:
        poolers.ready(pooler)
        shop.register(url=pooler.url)

        sends(shop)
        shop.register(paused=True)


def in_encoding(url: str, encoding: str) -> str:
    """The URL of an empty database with this encoding."""
    name = f"{url.rpartition('/')[2]}_{encoding.lower()}"
    with psycopg.connect(url, autocommit=True) as connection:
        made = "CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0"
        connection.execute(sql.SQL(made).format(sql.Identifier(name), sql.Literal(encoding)))
    return f"{url.rpartition('/')[0]}/{name}"


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_that_turns_into_one_that_cannot_work_fails_with_a_reason_and_takes_no_memory(
    shop: Shop, kind: str
) -> None:
    make, word = SOURCES[kind]
    shop.register(paused=True)
    make(shop)
    with bounded(shop, 120 * MEGABYTES):
        shop.operator.put(f"/v1/outboxes/{shop.name}", paused=False)

        failure = eventually(lambda: shop.outbox["failure"], within_seconds=60)
        assert word in failure
        assert PRIVATE not in failure
        shop.operator.put(f"/v1/outboxes/{shop.name}", paused=True)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "MULE_INTERNAL"])
def test_a_database_whose_encoding_says_nothing_is_refused_or_fails_by_name(shop: Shop, encoding: str) -> None:
    shop.url = in_encoding(shop.url, encoding)

    answer = shop.operator.put(f"/v1/outboxes/{shop.name}", url=shop.url, topics=[shop.topic])

    assert encoding in (answer.document.get("detail") or eventually(lambda: shop.outbox["failure"]))


def test_rows_are_as_large_as_they_are_and_not_as_they_say(shop: Shop) -> None:
    large = "INSERT INTO mqbroker_outbox (topic, body) SELECT %s, repeat('x', 40000000) FROM generate_series(1, 20)"
    with shop.session() as session:
        session.execute(large.encode(), [shop.topic])
        session.execute("SELECT mq_send(%s, 'behind them')", [shop.topic])
        session.execute("ALTER TABLE mqbroker_outbox ALTER bytes DROP EXPRESSION")
        session.execute("UPDATE mqbroker_outbox SET bytes = 0")
    with bounded(shop, 60 * MEGABYTES):
        shop.register()
        assert [message["body"] for message in shop.receives_all(1)] == ["behind them"]
    assert eventually(lambda: shop.outbox["refused"]) == 20


def test_a_character_that_utf_8_does_not_have_sets_its_row_apart(shop: Shop) -> None:
    shop.url = in_encoding(shop.url, "WIN1252")
    with shop.session() as session:
        session.execute(table().encode())
        # An error of a row must not end the session in which the row is set apart.
        session.execute(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET exit_on_error = on', current_database()); END $$"
        )
        for body in ("'caf' || chr(233)", "chr(129)", "'behind it'"):
            session.execute(f"INSERT INTO mqbroker_outbox (topic, body) VALUES (%s, {body})".encode(), [shop.topic])

    shop.register()

    assert {message["body"] for message in shop.receives_all(2)} == {"caf\xe9", "behind it"}
    shop.drains()
    with shop.session() as session:
        [refused] = session.execute("SELECT reason FROM mqbroker_outbox_refused").fetchall()
    assert "0x81" in refused["reason"]


def test_a_role_that_may_only_connect_stops_nothing_and_fills_nothing(shop: Shop, roles: Roles) -> None:
    over = threading.Event()
    flood = "SELECT pg_notify('mqbroker_outbox', n || repeat('x', 7900)) FROM generate_series(1, 2000) AS n"
    locks = (
        "hashtextextended('mqbroker_outbox public', 0)",
        f"hashtextextended('{shop.topic}' || chr(31) || 'seven', 0)",
    )

    def notify() -> None:
        with psycopg.connect(roles.url(roles.nobody), autocommit=True) as session:
            while not over.is_set():
                session.execute(flood.encode())

    with psycopg.connect(roles.url(roles.nobody)) as session, bounded(shop, 60 * MEGABYTES):
        for lock in locks:
            session.execute(f"SELECT pg_advisory_lock({lock})".encode())
        session.commit()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("SELECT mqbroker_outbox_clear(0::smallint)")
        session.rollback()
        flooding = threading.Thread(target=notify)
        flooding.start()
        try:
            for _ in range(5):
                sends(shop)
        finally:
            over.set()
            flooding.join()


@pytest.mark.long
def test_a_turn_that_another_session_holds_is_a_failure_that_names_it(shop: Shop) -> None:
    shop.register()
    with shop.session() as holder, shop.session() as session:
        holder.execute("SELECT FROM mqbroker_outbox_state FOR UPDATE")
        session.execute("SELECT mq_send(%s, 'behind the turn')", [shop.topic])
        session.commit()

        failure = eventually(lambda: shop.outbox["failure"], within_seconds=60)

        assert f"pid {holder.info.backend_pid}" in failure
        assert shop.outbox["waiting"] == 1
        session.execute(FAILS)
        session.commit()
        holder.rollback()
        eventually(lambda: "a fault in the turn" in (shop.outbox["failure"] or ""))
        holder.execute("SELECT FROM mqbroker_outbox_state FOR UPDATE")
        looked_at = shop.outbox["looked_at"]
        # The broker had the turn in between: its failure stays until the lock has stood for as long again.
        eventually(lambda: shop.outbox["looked_at"] != looked_at)
        assert "a fault in the turn" in shop.outbox["failure"]
        session.execute("DROP TRIGGER fault ON mqbroker_outbox")
        session.commit()
        holder.rollback()
        assert [message["body"] for message in shop.receives_all(1)] == ["behind the turn"]
        assert eventually(lambda: shop.outbox["failure"] is None)


@pytest.mark.long
def test_a_key_that_another_transaction_holds_fails_an_insert_that_sets_no_time_out(shop: Shop) -> None:
    with shop.session() as holder, shop.session() as session:
        holder.execute("SELECT mq_send(%s, 'first', sharding_key => 'seven')", [shop.topic])

        with pytest.raises(psycopg.errors.LockNotAvailable, match="sharding key seven") as raised:
            session.execute("SELECT mq_send(%s, 'second', sharding_key => 'seven')", [shop.topic])

        assert str(holder.info.backend_pid) in (raised.value.diag.message_hint or "")
        session.rollback()
        session.execute("SET lock_timeout = '10ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            session.execute("SELECT mq_send(%s, 'second', sharding_key => 'seven')", [shop.topic])
