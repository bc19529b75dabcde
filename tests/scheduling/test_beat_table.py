"""Each task of the beat table has a promise that only its ticks keep: without its entry the promise is broken.

A worker and beat run without a web process, so that no fallback poller does the work of a missing tick. What is due is
stored beforehand, for all tasks. Then beats with one entry each follow each other: each keeps its promise, which no
earlier one has kept. With the reverse order, each task has ticked before each other one. Their periods are short, for
the table's own take up to a minute.
"""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from mqbroker.celery.app import EVERY_SECONDS
from mqbroker.embedded.commands import ROOT, python, worker
from tests.broker import databases, forks
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.console import given_up
from tests.console.rows import Broker

SECRET = f"whsec_{base64.b64encode(bytes(24)).decode()}"
HOUR = timedelta(hours=1)
DUE, FAR, ASKED, USED_UP = (UUID(int=number) for number in (1, 2, 3, 4))
GONE_GROUP, OVER, IN_FLIGHT = 999, 7, 8
# What the tick of each task does, as a question to the database.
KEPT = {
    "transactions.check": f"SELECT EXISTS (SELECT 1 FROM check_attempt WHERE transaction_id = '{ASKED}')",
    "transactions.discard": f"SELECT discarded_at IS NOT NULL FROM half_message WHERE transaction_id = '{USED_UP}'",
    "transactions.count": "SELECT EXISTS (SELECT 1 FROM counted_operations)",
    "scheduling.release": f"SELECT NOT EXISTS (SELECT 1 FROM timer WHERE id = '{DUE}')",
    "schedules.fire": "SELECT next_at > now() FROM schedule",
    "scheduling.reappend": f"SELECT log_segment > 1 FROM timer WHERE id = '{FAR}'",
    "delivery.expire": f"SELECT NOT EXISTS (SELECT 1 FROM receipt WHERE nonce = {OVER})",
    "delivery.reappend": f"SELECT log_segment > 1 FROM receipt WHERE nonce = {IN_FLIGHT}",
    "delivery.push": "SELECT failures > 0 FROM subscription WHERE name = 'sms'",
    "delivery.clean_up": f"SELECT NOT EXISTS (SELECT 1 FROM progress WHERE reader_id = {GONE_GROUP})",
    "store.segments.lifecycle": "SELECT id > 3 FROM segment WHERE state = 'open'",
    "store.heartbeat": "SELECT EXISTS (SELECT 1 FROM heartbeat WHERE kind = 'worker')",
    "actions.run": "SELECT state = 'done' FROM action",
    "analytics.nightly": "SELECT EXISTS (SELECT 1 FROM nightly_run)",
}


# Tasks whose retries have an alarm in the worker, which releases whatever is due by then.
ALSO_DO = {"scheduling.release": ("delivery.expire", "delivery.push")}


def test_each_task_of_the_beat_table_has_a_promise() -> None:
    assert KEPT.keys() == EVERY_SECONDS.keys()


class Ticking:
    """A worker of one database, and the beats that tick for it."""

    def __init__(self, folder: Path, database_url: str) -> None:
        own = {
            "DATABASE_URL": database_url,
            "REDIS_URL": os.environ["REDIS_URL"],
            "MQBROKER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
            # A folder that cannot be made: the export is begun, and ends before it starts Spark.
            "MQBROKER_EXPORT_NIGHTLY_TO": "/dev/null/exports",
            "MQBROKER_EXPORT_NIGHTLY_AT": (datetime.now(UTC) - timedelta(minutes=1)).strftime("%H:%M"),
        }
        self.folder = folder
        others = {name: value for name, value in os.environ.items() if not name.startswith("MQBROKER_")}
        self.environment = others | forks.PATH | own
        self.worker = self._child("worker", worker())

    @contextmanager
    def beat(self, *tasks: str) -> Iterator[None]:
        """Beat with these tasks alone, until the end of the block."""
        places = ["--schedule", str(self.folder / f"schedule of {tasks[0]}")]
        child = self._child("beat", python("-m", "tests.scheduling.beats", "--tasks", ",".join(tasks), *places))
        child.start()
        try:
            yield
        finally:
            child.stop()

    def _child(self, name: str, command: list[str]) -> forks.ForkedChild:
        return forks.ForkedChild(name, command, self.environment, self.folder / f"{name}.log", ROOT)


@contextmanager
def ticking(folder: Path, database_url: str) -> Iterator[tuple[Ticking, psycopg.Connection[Any]]]:
    """A worker that runs until the end of the block, and a session to look at its database."""
    made = Ticking(folder, database_url)
    with psycopg.connect(database_url, autocommit=True, row_factory=namedtuple_row) as connection:
        made.worker.start()
        try:
            yield made, connection
        finally:
            made.worker.stop()


def is_kept(connection: psycopg.Connection[Any], task: str) -> bool:
    """Whether the promise of a task is kept by now."""
    row = connection.execute(KEPT[task].encode()).fetchone()
    return bool(row and row[0])


@pytest.fixture(scope="module")
def due(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database in which each task has something to do; copied, and never used itself."""
    with databases.copied(prepared) as database_url:
        with (
            ticking(tmp_path_factory.mktemp("due"), database_url) as (ticks, connection),
            # An export outlives its worker, and its session would stand in the way of copies.
            ticks.beat(*(task for task in EVERY_SECONDS if task != "analytics.nightly")),
        ):
            for segment in (2, 3):
                connection.execute("UPDATE segment SET opened_at = now() - interval '30 days' WHERE state = 'open'")
                eventually(partial(is_open, connection, segment))
        # Only now: the worker may have had ticks before it, and a release that looks ahead may outlive it.
        with psycopg.connect(database_url, autocommit=True, row_factory=namedtuple_row) as connection:
            eventually(partial(is_alone, connection))
            store_work(connection)
        yield database_url


def is_alone(connection: psycopg.Connection[Any]) -> bool:
    """Whether no other session is in the database."""
    found = connection.execute(
        "SELECT count(*) AS others FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ).fetchone()
    return found is not None and found.others == 0


def is_open(connection: psycopg.Connection[Any], segment: int) -> bool:
    """Whether new messages go to this segment."""
    row = connection.execute("SELECT id FROM segment WHERE state = 'open'").fetchone()
    return row is not None and row.id == segment


def store_work(connection: psycopg.Connection[Any]) -> None:
    """Stores what is due for each task."""
    now = connection.execute("SELECT now()").fetchone()
    assert now is not None
    broker = Broker(connection, now[0], segment=3)
    orders, shop, mail = broker.topic("orders"), broker.producer_group("shop"), broker.consumer_group("mail")
    nobody = f"http://127.0.0.1:{free_port()}/"
    broker.endpoint(shop, nobody, secret=SECRET)
    broker.half(shop, orders, b"x", HOUR, transaction_id=ASKED, next_check_at=broker.now)
    broker.half(shop, orders, b"x", HOUR, 15, transaction_id=USED_UP, next_check_at=broker.now, exhausted=True)
    # Segment 1 is dropped next, as soon as no timer and no receipt needs a message there.
    connection.execute("DROP TABLE consume_queue_2")
    old, new = broker.stored(orders, 0, b"x", HOUR, segment_id=1), broker.stored(orders, 0, b"x", HOUR)
    for timer, message, due_at in ((DUE, new, broker.now), (FAR, old, broker.now + 24 * HOUR)):
        place = {"log_segment": message.segment_id, "log_offset": message.log_offset, "topic_id": orders, "queue_id": 0}
        known = {"id": timer, "due_at": due_at, "message_id": uuid4(), "tags_code": 0, "reconsume_times": 0}
        broker.insert("timer", **place, **known)
    for nonce, message, expires_at in ((OVER, new, broker.now), (IN_FLIGHT, old, broker.now + 24 * HOUR)):
        broker.receipt(mail, orders, 0, nonce, "flight", None)
        connection.execute(
            "UPDATE receipt SET nonce = %s, expires_at = %s, log_segment = %s, log_offset = %s WHERE queue_offset = %s",
            (nonce, expires_at, message.segment_id, message.log_offset, nonce),
        )
    broker.schedule("nightly")
    connection.execute("UPDATE schedule SET next_at = now()")
    broker.consumer_group("pushed")
    given_up.subscription(broker, "sms", "pushed", "orders", nobody, secret=SECRET)
    broker.visible(new)
    broker.progress(GONE_GROUP, orders, 0, 1)
    connection.execute("UPDATE segment SET opened_at = now() - interval '30 days' WHERE state = 'open'")
    connection.execute(
        "INSERT INTO auth_user (username, password, is_superuser, is_staff, is_active, first_name, last_name, email,"
        " date_joined) VALUES ('ada', '', true, true, true, '', '', '', now())"
    )
    asked = {"kind": "producer_group.pause_checks", "author": "ada", "reason": "of a test", "state": "running"}
    broker.insert("action", id=UUID(int=5), targets='["kiosk"]', parameters="{}", total=1, **asked)
    connection.execute("DELETE FROM counted_operations")
    connection.execute("DELETE FROM heartbeat")
    connection.execute("DELETE FROM nightly_run")


@pytest.mark.chaos
@pytest.mark.timeout(300)
@pytest.mark.parametrize("order", [tuple(EVERY_SECONDS), tuple(reversed(EVERY_SECONDS))], ids=["forwards", "backwards"])
def test_only_the_ticks_of_a_task_keep_its_promise(due: str, tmp_path: Path, order: tuple[str, ...]) -> None:
    ticked: set[str] = set()
    with databases.copied(due) as url, ticking(tmp_path, url) as (ticks, connection):
        for task in order:
            if ticked.isdisjoint(ALSO_DO.get(task, ())):
                reason = f"{ticked} keep the promise of {task}: give it one of its own"
                assert not is_kept(connection, task), reason
            with ticks.beat(task):
                eventually(partial(is_kept, connection, task))
            ticked.add(task)
