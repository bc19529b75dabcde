"""What a check answers from a row, and how it comes to a row where there is none."""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from mqbroker_client import HalfMessage
from mqbroker_client.barrier import AlreadyCommitted, Barrier, TransactionAbandoned
from mqbroker_client.barrier.dialects import Dialect
from mqbroker_client.barrier.sessions import DriverSessions, Parameters, Row, Session
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.states import LocalTransactionState

from mqbroker.embedded.servers import postgres
from tests.barrier import mariadb
from tests.barrier.places import Place, half
from tests.broker.polling import at_this_load, eventually

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState.COMMIT, LocalTransactionState.ROLLBACK, LocalTransactionState.UNKNOWN

GROUP = "order-service"
DRIVER_ERRORS = (psycopg.Error, pymysql.err.Error, sqlite3.Error)


def begun(place: Place) -> Any:
    """A connection in a transaction that has read, so that a snapshot is taken where the isolation has one."""
    connection = place.connect()
    if place.isolation:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {place.isolation}")
    connection.cursor().execute("SELECT count(*) FROM orders")
    return connection


def states(barrier: Barrier, halves: Sequence[HalfMessage]) -> list[LocalTransactionState]:
    return [outcome.state for outcome in barrier.answer(halves)]


def commit(place: Place, asked: HalfMessage) -> None:
    with closing(place.connect()) as connection:
        place.barrier.insert_commit(connection, asked.transaction_id)
        connection.commit()


def update(place: Place, asked: HalfMessage, column: str, value: str) -> None:
    place.run(f"UPDATE mqbroker_barrier SET {column} = '{value}' WHERE transaction_id = '{asked.transaction_id}'")


def test_a_transaction_that_was_rolled_back_by_a_check_cannot_commit_at_any_isolation(place: Place) -> None:
    asked = half()
    with closing(begun(place)) as late:
        assert place.barrier.check(asked) == ROLLBACK
        with pytest.raises(TransactionAbandoned, match=f"{asked.transaction_id} was answered ROLLBACK to a check"):
            place.barrier.insert_commit(late, asked.transaction_id)
        late.rollback()

    assert place.barrier.check(asked) == ROLLBACK


def test_a_transaction_commits_once(place: Place) -> None:
    asked = half()
    with closing(begun(place)) as late:
        commit(place, asked)
        with pytest.raises(AlreadyCommitted, match="has committed before"):
            place.barrier.insert_commit(late, asked.transaction_id)
        late.rollback()

    assert place.barrier.check(asked) == COMMIT


def test_processes_that_start_together_make_the_table_once_and_each_later_start_changes_nothing(place: Place) -> None:
    asked = half()
    commit(place, asked)
    place.barrier.create_table()
    assert place.barrier.check(asked) == COMMIT

    place.run("DROP TABLE mqbroker_barrier")
    with ThreadPoolExecutor(8) as starts:
        for start in [starts.submit(place.barrier.create_table) for _ in range(8)]:
            start.result()

    assert place.barrier.check(asked) == ROLLBACK


def test_an_error_that_is_not_the_barriers_stays_what_it_is(place: Place) -> None:
    connection = place.connect()
    connection.close()

    with pytest.raises(DRIVER_ERRORS):
        place.barrier.insert_commit(connection, uuid7())


def test_a_batch_is_answered_by_one_select_and_one_insert_for_each_missing_row(place: Place) -> None:
    halves = [half() for _ in range(20)]
    for asked in halves[:10]:
        commit(place, asked)
    sessions = CountingSessions(DriverSessions(place.connect))

    assert states(Barrier.over(sessions, GROUP), halves) == [COMMIT] * 10 + [ROLLBACK] * 10
    assert [words for words in sessions.words if words in ("SELECT", "INSERT")] == [
        "SELECT",
        *["INSERT"] * 10,
        "SELECT",
    ]


def test_halves_that_run_keep_no_other_of_their_batch_waiting(place: Place) -> None:
    if place.kind == "sqlite":
        pytest.skip("SQLite has one writer, so one that runs")
    running, free = [half() for _ in range(16)], [half() for _ in range(4)]
    with ExitStack() as connections:
        for one in running:
            connection = connections.enter_context(closing(place.connect()))
            place.barrier.insert_commit(connection, one.transaction_id)
        began = time.monotonic()
        found = states(place.barrier, [*running, *free])
        took = time.monotonic() - began

    assert found == [UNKNOWN] * 16 + [ROLLBACK] * 4
    assert took < at_this_load(1.2)
    eventually(lambda: states(place.barrier, running) == [ROLLBACK] * 16)


def test_one_of_a_batch_that_ends_while_the_check_waits_is_answered_with_the_truth(place: Place) -> None:
    ending, other = half(), half()
    with closing(place.connect()) as connection, ThreadPoolExecutor(1) as checks:
        place.barrier.insert_commit(connection, ending.transaction_id)
        answer = checks.submit(states, place.barrier, [other, ending])
        time.sleep(0.2)
        connection.commit()

        assert answer.result() == [ROLLBACK, COMMIT]


def test_a_row_that_may_be_deleted_is_not_taken_for_a_rollback(place: Place) -> None:
    old = datetime.now(UTC) - timedelta(days=14)
    asked, committed = replace(half(), stored_at=old), replace(half(), stored_at=old)
    commit(place, committed)

    assert states(place.barrier, [asked, committed]) == [UNKNOWN, COMMIT]
    assert place.barrier.check(replace(asked, stored_at=old + timedelta(days=1))) == ROLLBACK


def test_rows_are_deleted_after_14_days_and_not_before_their_messages_are_sent(place: Place) -> None:
    older, younger, kept = half(), half(), half()
    for asked, days in ((older, 15), (younger, 13), (kept, 15)):
        commit(place, asked)
        moment = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%d %H:%M:%S")
        place.run(
            f"UPDATE mqbroker_barrier SET decided_at = '{moment}' WHERE transaction_id = '{asked.transaction_id}'"
        )
    place.run(f"UPDATE mqbroker_barrier SET messages = '[]' WHERE transaction_id = '{kept.transaction_id}'")

    assert place.barrier.purge() == 1
    left = {row for (row,) in place.run("SELECT transaction_id FROM mqbroker_barrier")}
    assert {str(younger.transaction_id), str(kept.transaction_id)} <= left
    assert str(older.transaction_id) not in left
    place.run("DELETE FROM mqbroker_barrier")


def test_a_purge_goes_on_until_nothing_old_is_left(place: Place) -> None:
    with closing(place.connect()) as connection:
        for _ in range(1_500):
            place.barrier.insert_commit(connection, uuid7())
        connection.cursor().execute("UPDATE mqbroker_barrier SET decided_at = '2020-01-01 00:00:00'")
        connection.commit()

    assert place.barrier.purge() == 1_500


def test_a_database_that_does_not_answer_says_nothing(place: Place) -> None:
    def connect() -> Any:
        raise ConnectionError("the database is away")

    [outcome] = Barrier(connect, GROUP).answer([half()])

    assert (outcome.state, outcome.remark) == (UNKNOWN, "ConnectionError: the database is away")


def test_a_missing_table_says_nothing(tmp_path: Path) -> None:
    [outcome] = Barrier(lambda: sqlite3.connect(tmp_path / "empty"), GROUP).answer([half()])

    assert (outcome.state, outcome.remark) == (UNKNOWN, "OperationalError: no such table: mqbroker_barrier")


def test_a_driver_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="does not know connections of builtins: give one of psycopg"):
        DriverSessions(object).of(object())


@pytest.fixture(scope="module")
def standby(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Any]]:
    """A connection to a PostgreSQL that is a replica."""
    server = postgres.Server(tmp_path_factory.mktemp("standby"))
    server.start()
    Barrier(lambda: psycopg.connect(server.url), GROUP).create_table()
    server.stop()
    (server.data / "standby.signal").touch()
    shutil.copystat(server.data / "PG_VERSION", server.data / "standby.signal")
    server.start()
    yield lambda: psycopg.connect(server.url)
    server.stop()


def test_a_replica_says_nothing_of_a_row_that_it_lacks(standby: Callable[[], Any]) -> None:
    [outcome] = Barrier(standby, GROUP).answer([half()])

    assert outcome.state == UNKNOWN
    assert outcome.remark is not None
    assert "ReadOnlySqlTransaction" in outcome.remark


@pytest.mark.parametrize(
    ("user", "reason"), [("reader", "--read-only"), ("root", "no row was written: the server is read-only")]
)
def test_a_read_only_mariadb_says_nothing_to_a_user_who_may_write_there_either(
    mariadb_server: mariadb.Server, user: str, reason: str
) -> None:
    """`root` has READ_ONLY ADMIN: its row would lie at the replica alone, and say ROLLBACK of what has committed."""
    with mariadb_server.database() as name:
        barrier = Barrier(lambda: mariadb_server.connect(name, user=user), GROUP)
        Barrier(lambda: mariadb_server.connect(name), GROUP).create_table()
        mariadb_server.run("SET GLOBAL read_only = 1")
        try:
            outcomes = [barrier.answer([half()]), barrier.answer([half(), half()])]
        finally:
            mariadb_server.run("SET GLOBAL read_only = 0")

        assert {outcome.state for answer in outcomes for outcome in answer} == {UNKNOWN}
        assert all(reason in str(outcome.remark) for answer in outcomes for outcome in answer)
        assert mariadb_server.run(f"SELECT count(*) FROM {name}.mqbroker_barrier") == [(0,)]


def test_a_read_only_sqlite_says_nothing(tmp_path: Path) -> None:
    Barrier(lambda: sqlite3.connect(tmp_path / "orders"), GROUP).create_table()

    replica = Barrier(lambda: sqlite3.connect(f"file:{tmp_path / 'orders'}?mode=ro", uri=True), GROUP)

    [outcome] = replica.answer([half()])
    assert (outcome.state, outcome.remark) == (UNKNOWN, "OperationalError: attempt to write a readonly database")


@dataclass
class CountingSessions:
    """Remembers the first word of each statement of the barrier's own sessions."""

    sessions: DriverSessions
    words: list[str] = field(default_factory=list)

    def asked(self) -> list[str]:
        return [word for word in self.words if word in ("SELECT", "INSERT")]

    def open(self) -> Session:
        return CountingSession(self.sessions.open(), self.words)

    def of(self, connection: Any) -> Session:
        return self.sessions.of(connection)

    def run(self, work: Callable[[], Any]) -> Any:
        return work()


@dataclass
class CountingSession:
    session: Session
    words: list[str]

    @property
    def dialect(self) -> Dialect:
        return self.session.dialect

    def query(self, statement: str, parameters: Parameters) -> Sequence[Row]:
        self.words.append(first_word(statement))
        return self.session.query(statement, parameters)

    def write(self, statement: str, parameters: Parameters) -> int:
        self.words.append(first_word(statement))
        return self.session.write(statement, parameters)

    def close(self) -> None:
        self.session.close()


def first_word(statement: str) -> str:
    return statement.rpartition("*/")[2].split()[0]
