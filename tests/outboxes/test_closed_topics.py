"""Rows for a topic that takes none now wait in their order, and are set apart by nothing; other rows flow."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.wire import Document
from tests.outboxes.conftest import Shop


def bodies(found: list[Document]) -> list[str]:
    """The bodies of messages, in their order."""
    return [message["body"] for message in found]


def refused(shop: Shop) -> int:
    """How many rows were set apart."""
    with shop.session() as session:
        row = session.execute("SELECT count(*) AS rows FROM mqbroker_outbox_refused").fetchone()
    assert row is not None
    return int(row["rows"])


@pytest.mark.parametrize(
    ("closed", "opened"),
    [({"permission": "r"}, {"permission": "rw"}), ({"sends_from": "9999-01-01T00:00:00Z"}, {"sends_from": None})],
    ids=str,
)
def test_rows_wait_while_their_topic_takes_none_and_are_sent_in_their_order(
    shop: Shop, closed: dict[str, Any], opened: dict[str, Any]
) -> None:
    shut = Shop(shop.operator, shop.url, shop.broker, topic=characters.name("shut"), group=shop.group)
    shut.operator.put(f"/v1/topics/{shut.topic}", queues=1, **closed)
    shop.register(topics=[shop.topic, shut.topic])
    with shop.session() as session:
        for number in range(600):
            session.execute("SELECT mq_send(%s, %s, sharding_key => 'seven')", [shut.topic, f"{number}"])
    with shop.session() as session:
        session.execute("SELECT mq_send(%s, 'good')", [shop.topic])

    assert bodies(shop.receives_all(1)) == ["good"]
    failure = eventually(lambda: shop.outbox["failure"])
    assert failure.startswith("Rows wait: ")
    assert shut.topic in failure

    shop.operator.put(f"/v1/topics/{shut.topic}", **opened)
    assert bodies(shut.receives_all(600)) == [str(number) for number in range(600)]
    assert refused(shop) == 0
    eventually(lambda: shop.outbox["failure"] is None)


def test_what_an_outbox_sends_counts_for_the_limit_of_a_namespace_and_waits_for_it(shop: Shop) -> None:
    team = characters.name("team")
    shop.operator.put(f"/v1/namespaces/{team}", messages_per_second=5)
    shop.topic = f"{team}%orders"
    shop.prepare()
    shop.register()
    # Each of a trace of its own, and so sent by itself.
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    rows = "SELECT %s, n::text, 'seven', %s FROM generate_series(0, 19) AS n"
    with shop.session() as session:
        session.execute(
            f"INSERT INTO mqbroker_outbox (topic, body, sharding_key, traceparent) {rows}", [shop.topic, trace]
        )

    assert bodies(shop.receives_all(20)) == [str(number) for number in range(20)]
    assert refused(shop) == 0
    # Each try after a refusal sends a row, so there are no more refusals than rows, and two in each process before.
    assert 0 < eventually(lambda: int(shop.operator.reads(f"/v1/namespaces/{team}")["refused"])) <= 20 + 2 * 2


@pytest.mark.parametrize(("created_at", "age"), [("2400-01-01", timedelta()), ("2001-01-01", timedelta(days=9000))])
def test_a_row_that_waits_is_as_old_as_its_source_says_and_never_of_a_time_to_come(
    shop: Shop, created_at: str, age: timedelta
) -> None:
    shop.operator.put(f"/v1/topics/{shop.topic}", permission="r")
    shop.register()
    with shop.session() as session:
        row = "INSERT INTO mqbroker_outbox (topic, body, created_at) VALUES (%s, 'x', %s)"
        session.execute(row, [shop.topic, created_at])

    oldest_at = datetime.fromisoformat(eventually(lambda: shop.outbox["oldest_at"]))

    assert datetime.now(UTC) - oldest_at >= age
