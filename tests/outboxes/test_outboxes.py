"""A message is one INSERT: what a producer commits in its own database is sent, once, and nothing else is."""

import json
import os
import threading
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import psycopg
import pytest

from tests.broker.polling import eventually
from tests.outboxes.conftest import Shop

# MQ_OUTBOX_TRANSACTIONS=20000 in the environment: the figure of docs/sql.md.
TRANSACTIONS = int(os.environ.get("MQ_OUTBOX_TRANSACTIONS", "400"))
WRITERS = 8


def test_what_a_transaction_inserts_is_sent_when_it_commits_and_not_when_it_rolls_back(shop: Shop) -> None:
    shop.register()
    with shop.session() as session:
        [kept] = session.execute(
            "SELECT mq_send(%s, 'kept', tags => 'new', keys => '{a,b}', sharding_key => 'seven',"
            ' properties => \'{"colour": "red"}\') AS id',
            [shop.topic],
        ).fetchall()
    with shop.session() as session:
        session.execute('SELECT mq_send_json(%s, \'{"taken": "back"}\')', [shop.topic])
        session.rollback()
    with shop.session() as session:
        session.execute("INSERT INTO mqbroker_outbox (topic, body_bytes) VALUES (%s, '\\x00ff')", [shop.topic])

    found = {message["message_id"]: message for message in shop.receives_all(2)}

    assert len(found) == 2
    message = found.pop(str(kept["id"]))
    assert (message["body"], message["tags"], message["keys"]) == ("kept", "new", ["a", "b"])
    assert (message["sharding_key"], message["properties"]) == ("seven", {"colour": "red"})
    [binary] = found.values()
    assert binary["body_base64"] == "AP8="
    eventually(lambda: shop.outbox["drained"] == 2)


def test_a_row_can_have_a_delay(shop: Shop) -> None:
    shop.register()
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'later', delay_seconds => 3600)", [shop.topic])

    shop.drains()

    assert shop.receives(wait_seconds=0) == []
    eventually(lambda: shop.outbox["drained"] == 1)


def test_rows_that_were_committed_before_the_outbox_is_registered_or_while_it_is_paused_are_sent_then(
    shop: Shop,
) -> None:
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'early')", [shop.topic])
    shop.register()
    assert [message["body"] for message in shop.receives_all(1)] == ["early"]

    shop.register(paused=True)
    # The drain that is under way may take one more.
    eventually(lambda: not listens(shop))
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'paused')", [shop.topic])
    assert shop.receives(wait_seconds=1) == []
    assert not shop.is_empty()

    shop.register(paused=False)
    assert [message["body"] for message in shop.receives_all(1)] == ["paused"]


def listens(shop: Shop) -> bool:
    """Whether a process of the broker is connected."""
    with shop.session() as session:
        asked = (
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'mqbroker-outbox'"
        )
        return session.execute(asked).fetchone() is not None


def test_what_no_message_can_be_made_of_is_set_apart_with_the_reason_and_holds_nothing_up(shop: Shop) -> None:
    shop.register(topics=[shop.topic, "bad*"])
    with shop.session() as session:
        for topic, given in (
            (shop.topic, "first"),
            ("not-allowed", "x"),
            ("bad topic", "x"),
            (shop.topic, "last"),
        ):
            session.execute("SELECT mq_send(%s, %s)", [topic, given])
        session.execute("SELECT mq_send(%s, 'x', properties => '{\"number\": 7}')", [shop.topic])
        session.execute("SELECT mq_send(%s, repeat('x', 4194305))", [shop.topic])
        session.execute("SELECT mq_send(%s, repeat('x', 200000000))", [shop.topic])

    assert {message["body"] for message in shop.receives_all(2)} == {"first", "last"}
    shop.drains()
    with shop.session() as session:
        rows = session.execute("SELECT topic, reason FROM mqbroker_outbox_refused ORDER BY reason").fetchall()
    assert [row["reason"].partition(":")[0] for row in rows] == [
        *("message_illegal", "message_too_large", "message_too_large", "no_permission", "topic_illegal")
    ]
    assert "properties" in rows[0]["reason"]
    eventually(lambda: (shop.outbox["drained"], shop.outbox["refused"]) == (2, 5))


def test_a_row_that_was_stored_before_a_crash_is_not_stored_again(shop: Shop) -> None:
    known = uuid.uuid4()
    shop.operator.make("/v1/messages", topic=shop.topic, body="once", message_id=str(known))
    shop.register()
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'once', id => %s)", [shop.topic, known])
        session.execute("SELECT mq_send(%s, 'another')", [shop.topic])
    shop.drains()

    assert sorted(message["body"] for message in shop.receives_all(2)) == ["another", "once"]


def test_each_committed_row_is_sent_once_and_those_of_a_key_in_the_order_of_their_commits(shop: Shop) -> None:
    shop.register()
    committed: list[tuple[str, int]] = []
    counts: defaultdict[str, int] = defaultdict(int)
    lock = threading.Lock()

    def write(writer: int) -> None:
        random = Random(writer)
        with psycopg.connect(shop.url) as session:
            for _ in range(TRANSACTIONS // WRITERS):
                key = f"key {random.randrange(12)}"
                # The producer's own row is locked as long as the key is: the counts are in the order of the commits.
                session.execute("SELECT mq_send(%s, '', sharding_key => %s)", [shop.topic, key])
                with lock:
                    number = counts[key]
                session.execute("UPDATE mqbroker_outbox SET body = %s WHERE body = ''", [json.dumps([key, number])])
                if random.random() < 0.1:
                    session.rollback()
                    continue
                with lock:
                    counts[key] += 1
                    committed.append((key, number))
                session.commit()

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(write, range(WRITERS)))
    found = [tuple(json.loads(message["body"])) for message in shop.receives_all(len(committed))]

    assert sorted(found) == sorted(committed)
    by_key: defaultdict[str, list[int]] = defaultdict(list)
    for key, number in found:
        by_key[key].append(number)
    assert {key: numbers for key, numbers in by_key.items() if numbers != sorted(numbers)} == {}


def size_of(session: psycopg.Connection[dict[str, Any]]) -> float:
    """The bytes of the table with its indexes: 60,000 rows of 400 B take 36 MB."""
    partitions = "'mqbroker_outbox_0'::regclass, 'mqbroker_outbox_1'"
    row = session.execute(
        f"SELECT sum(pg_total_relation_size(c)) AS bytes FROM unnest(ARRAY[{partitions}]) AS c"
    ).fetchone()
    assert row is not None
    session.rollback()
    return float(row["bytes"])


def test_the_table_stays_small_beside_an_old_snapshot(shop: Shop) -> None:
    shop.register()
    with psycopg.connect(shop.url) as old, shop.session() as session:
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT txid_current_snapshot()")
        for _ in range(4):
            session.execute(
                "INSERT INTO mqbroker_outbox (topic, body) SELECT %s, repeat('x', 400) FROM generate_series(1, 15000)",
                [shop.topic],
            )
            session.commit()
            shop.drains()
        eventually(lambda: size_of(session) < 25e6)


def test_an_outbox_that_cannot_be_drained_says_why_and_shows_no_password(shop: Shop) -> None:
    secret = "a-password-of-this-test"
    made = shop.register(url=f"postgresql://shop:{secret}@127.0.0.1:9/shop")
    assert (made["server"], made["port"], made["database"], made["user"]) == ("127.0.0.1", 9, "shop", "shop")
    assert "refused" in made["failure"]
    assert "refused" in eventually(lambda: shop.outbox["failure"])

    shop.register()
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'x')", [shop.topic])
    shop.receives_all(1)
    assert eventually(lambda: shop.outbox["failure"] is None)

    with shop.session() as session:
        session.execute("DROP TABLE mqbroker_outbox CASCADE")
    assert 'relation "mqbroker_outbox" does not exist' in eventually(lambda: shop.outbox["failure"])
    with psycopg.connect(shop.broker.database_url) as audit:
        rows = audit.execute(
            "SELECT before::text, after::text FROM audit_entry WHERE target = %s", [shop.name]
        ).fetchall()
    assert len(rows) >= 2
    assert secret not in json.dumps(rows)
    assert secret not in json.dumps(shop.outbox)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"url": "mysql://shop@db/shop"}, "url"),
        ({"url": "postgresql://db"}, "url"),
        ({"url": "postgresql://db/shop?passfile=/etc/passwd"}, "passfile"),
        ({"url": "postgresql://db/shop?service=x"}, "service"),
        ({"schema": "a, b"}, "schema"),
        ({"schema": '"Shop"'}, "schema"),
        ({"topics": []}, "topics"),
        ({"topics": ["a b"]}, "topics"),
        ({"more": 1}, "more"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(shop: Shop, changes: dict[str, object], word: str) -> None:
    given = {"url": shop.url, "topics": [shop.topic], **changes}

    answer = shop.operator.put(f"/v1/outboxes/{shop.name}", **given)

    assert answer.status == 422
    assert word in answer.document["detail"]
    assert shop.operator.get(f"/v1/outboxes/{shop.name}").status == 404


def test_registrations_at_once_leave_one_outbox(shop: Shop) -> None:
    with ThreadPoolExecutor(8) as threads:
        path, given = f"/v1/outboxes/{shop.name}", {"url": shop.url, "topics": [shop.topic]}
        answers = list(threads.map(lambda _: shop.operator.put(path, **given).status, range(8)))

    assert sorted(answers) == [200] * 7 + [201]
