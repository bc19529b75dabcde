"""A transaction of two phases sends: its server knows such, and its producers need not notify."""

from collections.abc import Iterator

import psycopg
import pytest

from mqbroker.embedded.servers import postgres
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.control.operators import Operator
from tests.outboxes.conftest import Shop, table


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    """A PostgreSQL whose transactions can be prepared."""
    server = postgres.Server(tmp_path_factory.mktemp("source"))
    server.start()
    with psycopg.connect(server.url, user="postgres", autocommit=True) as session:
        session.execute("ALTER SYSTEM SET max_prepared_transactions = 10")
    server.stop()
    server.start()
    with psycopg.connect(server.url, autocommit=True) as session:
        session.execute(table().encode())
    yield server
    server.stop()


@pytest.fixture
def shop(broker: RunningBroker, server: postgres.Server) -> Iterator[Shop]:
    """A shop on that server."""
    made = Shop(Operator(broker.url, API_KEY), server.url, broker)
    made.prepare()
    made.register()
    yield made
    made.operator.delete(f"/v1/outboxes/{made.name}")


def test_what_was_prepared_is_sent_once_it_is_committed_and_not_when_it_is_rolled_back(shop: Shop) -> None:
    prepared = [(f"order {number}", number % 3 > 0) for number in range(10)]
    for body, _ in prepared:
        with psycopg.connect(shop.url) as session:
            session.execute("SELECT mq_send(%s, %s, sharding_key => %s)", [shop.topic, body, body])
            session.execute(f"PREPARE TRANSACTION '{body}'".encode())
    assert shop.receives(wait_seconds=1) == []

    with psycopg.connect(shop.url, autocommit=True) as session:
        for body, commits in prepared:
            session.execute(f"{'COMMIT' if commits else 'ROLLBACK'} PREPARED '{body}'".encode())

    expected = {body for body, commits in prepared if commits}
    assert {message["body"] for message in shop.receives_all(len(expected))} == expected
    assert shop.outbox["failure"] is None


@pytest.mark.parametrize(
    ("locks", "table_"),
    [
        ("LOCK TABLE mqbroker_outbox_1 IN SHARE MODE", "mqbroker_outbox_1"),
        ("LOCK TABLE mqbroker_outbox_state IN ACCESS EXCLUSIVE MODE", "mqbroker_outbox_state"),
        ("SELECT FROM mqbroker_outbox FOR UPDATE", "mqbroker_outbox"),
    ],
)
@pytest.mark.parametrize("is_prepared", [False, True], ids=["a session", "a prepared transaction"])
def test_a_lock_that_keeps_rows_from_being_drained_is_a_failure_that_says_how_to_end_it(
    shop: Shop, locks: str, table_: str, is_prepared: bool
) -> None:
    name = f"lock of {shop.name}"
    with psycopg.connect(shop.url, user="postgres") as holder:
        # One transaction: the broker never sees the row without its lock.
        holder.execute("SELECT mq_send(%s, 'behind the lock')", [shop.topic])
        if "FOR UPDATE" in locks:
            holder.commit()
        holder.execute(locks.encode())
        if is_prepared:
            holder.execute(f"PREPARE TRANSACTION '{name}'".encode())
        failure = eventually(lambda: shop.outbox["failure"], within_seconds=60)
        if is_prepared:
            holder.rollback()
            holder.autocommit = True
            ends, named = f"COMMIT PREPARED '{name}'", f"the prepared transaction '{name}'"
            holder.execute(ends.encode())
        else:
            ends, named = f"pg_terminate_backend({holder.info.backend_pid})", f"pid {holder.info.backend_pid}"
            holder.commit()

    assert [word for word in (f"has locked {table_} ", named, ends) if word not in failure] == [], failure
    assert [message["body"] for message in shop.receives_all(1)] == ["behind the lock"]
