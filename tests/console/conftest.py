"""The characters of the console's tests: a broker with a past, its console, and an operator who looks at it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import urllib3
from psycopg import sql
from psycopg.rows import namedtuple_row

from mqbroker.embedded import commands
from mqbroker.environment.framework import DOORS
from store.naming import names
from tests.broker import databases, forks
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker
from tests.console.operators import Operator
from tests.console.rows import Broker

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "let me see"
# An admin, a viewer who reads bodies, an operator, a viewer who reads none, and a user without a role.
USERS = f"""
from access import roles
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
# Hashed once: each hash takes 0.4 s.
password = make_password("{PASSWORD}")
make = lambda name: User.objects.create(username=name, password=password, is_staff=name == "noel")
roles.assign(make("ada"), "admin", bodies=True)
roles.assign(make("bob"), "viewer", bodies=True)
roles.assign(make("oda"), "operator", bodies=False)
roles.assign(make("vic"), "viewer", bodies=False)
make("noel")
"""
# The tables of each door, which an installation can do without.
OF_DOORS = {
    "analytics": ("nightly_run", "report_chart"),
    "transactions.outboxes": ("outbox",),
    "scheduling.cron": ("schedule", "schedule_firing"),
}
FORGOTTEN = (
    *("commit_log", "consume_queue", "queue_floor", "progress", "operation", "check_attempt", "half_message"),
    *("transaction_total", "counted_operations"),
    *(
        "timer",
        "receipt",
        "bundle",
        "waiting",
        "redrive",
        "nack",
        "subscription",
        "endpoint",
        "producer_group",
        "consumer_group",
        "api_key",
        "namespace",
        "sign_in_limit",
        "heartbeat",
        "presence",
        "export",
        "history_figure",
    ),
    *(table for door in DOORS for table in OF_DOORS[door]),
)
NUMBERS = ("commit_log_offset", "operation_id")


@pytest.fixture(scope="package")
def database(prepared: str) -> Iterator[str]:
    """The URL of a migrated database with the users of these tests."""
    with databases.copied(prepared) as url:
        manage(url, "shell", "--verbosity", "0", "--command", USERS)
        yield url


def manage(database: str, *arguments: str) -> None:
    """Run a management command on a database."""
    forks.run(commands.manage(*arguments), environment(database)).check_returncode()


def environment(database: str) -> dict[str, str]:
    """The environment of a process of the broker."""
    known = {
        "MQBROKER_SECRET_KEY": "a secret of these tests",
        "MQBROKER_CONSOLE_READING_SECONDS": "0",
        "MQBROKER_RETAIN_UNTIL_EXPORTED": "true",
        # Where no server listens: a form registers an outbox that is away.
        "MQBROKER_OUTBOX_ALLOWED_NETWORKS": "127.0.0.0/8",
        "MQBROKER_EXPORT_NIGHTLY_TO": "/exports/nightly",
        # Not due while these tests run: no worker would begin it.
        "MQBROKER_EXPORT_NIGHTLY_AT": (datetime.now(UTC) + timedelta(hours=2)).strftime("%H:%M"),
    }
    return {**os.environ, "DATABASE_URL": database, **known}


@pytest.fixture(scope="package")
def console(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running web process, which ends with this folder: one that idles polls."""
    port = free_port()
    log = tmp_path_factory.mktemp("console") / "web.log"
    with serving(database, port, log):
        address = f"http://127.0.0.1:{port}"
        patient = urllib3.Retry(total=100, backoff_factor=0.05, backoff_max=0.2)
        answer = urllib3.request("GET", f"{address}/console/login/", retries=patient)
        assert answer.status == 200, log.read_text()
        yield address


@contextmanager
def serving(database: str, port: int, log: Path) -> Iterator[None]:
    """A web process, ended by the end of the block, or with this process."""
    command = commands.web(port, processes=1, reload=False)
    web = forks.ForkedChild("web", command, environment(database), log, ROOT, stop_seconds=20)
    web.start()
    try:
        yield
    finally:
        web.stop()


@pytest.fixture(scope="package")
def session(database: str) -> Iterator[psycopg.Connection[Any]]:
    """One for all tests: a new one reads the catalog of every partition anew."""
    with psycopg.connect(database, autocommit=True, row_factory=namedtuple_row, prepare_threshold=None) as session:
        yield session


@pytest.fixture
def broker(session: psycopg.Connection[Any]) -> Broker:
    """A broker without a past: each test gives it one."""
    # Where there are few rows TRUNCATE costs more: it makes new files, those of every partition.
    deletes = [sql.SQL("DELETE FROM {}").format(sql.Identifier(table)) for table in FORGOTTEN]
    restarts = [sql.SQL("ALTER SEQUENCE {} RESTART").format(sql.Identifier(sequence)) for sequence in NUMBERS]
    topics = sql.SQL("DELETE FROM topic WHERE name <> ALL ({})").format(list(names.SYSTEM))
    session.execute(sql.SQL("; ").join([*deletes, topics, *restarts]))
    # What a test with very many rows leaves behind is not the next one's to explain.
    session.execute("SELECT pg_stat_force_next_flush()")
    for table in session.execute("SELECT relname FROM pg_stat_user_tables WHERE n_dead_tup > 10000").fetchall():
        session.execute(sql.SQL("VACUUM {}").format(sql.Identifier(table.relname)))
    now = session.execute("SELECT now()").fetchone()
    assert now is not None
    return Broker(session, now[0])


@pytest.fixture(scope="package")
def ada(database: str, console: str) -> Operator:
    """An admin who is signed in."""
    forget_attempts(database)
    return Operator.signed_in(console, "ada", PASSWORD)


@pytest.fixture(scope="package")
def bob(database: str, console: str) -> Operator:
    """A viewer who is signed in, and reads bodies."""
    forget_attempts(database)
    return Operator.signed_in(console, "bob", PASSWORD)


@pytest.fixture(scope="package")
def oda(database: str, console: str) -> Operator:
    """An operator who is signed in."""
    forget_attempts(database)
    return Operator.signed_in(console, "oda", PASSWORD)


@pytest.fixture(scope="package")
def vic(database: str, console: str) -> Operator:
    """A viewer who is signed in, and reads no bodies."""
    forget_attempts(database)
    return Operator.signed_in(console, "vic", PASSWORD)


def ada_at(broker: RunningBroker) -> Operator:
    """An admin who is signed in to another broker, which gets the users of these tests."""
    forks.run(commands.manage("shell", "--verbosity", "0", "--command", USERS), broker.environment).check_returncode()
    return Operator.signed_in(broker.url, "ada", PASSWORD)


def forget_attempts(database: str) -> None:
    """Gives back the attempts that earlier tests have used up at the sign-in."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("TRUNCATE sign_in_limit")


@pytest.fixture
def stranger(console: str) -> Operator:
    """A caller that has not signed in."""
    return Operator(console)
