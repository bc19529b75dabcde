"""Schedules while workers die: the message of each time is stored once, and soon after its time."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

import psycopg
import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import cells, forks
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.conftest import REDIS_URL
from tests.control.operators import Operator
from tests.schedules.conftest import Plan

pytestmark = pytest.mark.chaos
# MQ_SCHEDULES=1000 MQ_SCHEDULES_SECONDS=300 in the environment: some six minutes. With MQ_SCHEDULES_FAULTS=1 one worker
# is killed in all, and the lateness that `-s` prints is the figure of docs/schedules.md.
SCHEDULES = int(os.environ.get("MQ_SCHEDULES", "20"))
SECONDS = int(os.environ.get("MQ_SCHEDULES_SECONDS", "12"))
FAULTS = float(os.environ.get("MQ_SCHEDULES_FAULTS", "inf"))
LATE = """
SELECT
    round(extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY late)) * 1000) AS p50,
    round(extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY late)) * 1000) AS p99,
    round(extract(epoch FROM max(late)) * 1000)
FROM (
    SELECT c.entered_at - (convert_from(l.properties, 'UTF8')::json ->> 'scheduled_at')::timestamptz AS late
    FROM commit_log AS l
    INNER JOIN consume_queue AS c
        ON l.segment_id = c.log_segment AND l.log_offset = c.log_offset AND c.topic_id = l.topic_id
    WHERE l.topic_id = %s
) AS m
"""
STORED = """
SELECT convert_from(properties, 'UTF8')::json ->> 'schedule', convert_from(properties, 'UTF8')::json ->> 'scheduled_at'
FROM commit_log WHERE topic_id = %s
"""


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with two workers, which may be killed."""
    with cells.installation(prepared) as database_url:
        folder = tmp_path_factory.mktemp("mortal")
        broker = RunningBroker(folder, database_url, os.environ.get("REDIS_URL", REDIS_URL))
        second = forks.ForkedChild("worker-2", commands.worker(), broker.environment, folder / "worker-2.log", ROOT)
        broker.children.append(second)
        with broker:
            yield broker


def test_each_time_is_stored_once_while_workers_are_killed_and_frozen(broker: RunningBroker) -> None:
    operator = Operator(broker.url, API_KEY)
    first = Plan(operator, broker.database_url)
    first.prepare()
    plans = [Plan(operator, broker.database_url, topic=first.topic, group=first.group) for _ in range(SCHEDULES)]
    for plan in plans:
        plan.puts(cron="* * * * * *", paused=True)
    # All at once, from the same second on.
    begin = datetime.fromisoformat(clock(broker)) + timedelta(seconds=10 + SCHEDULES // 50)
    end = begin + timedelta(seconds=SECONDS - 1)
    for plan in plans:
        plan.puts(paused=False, begins_at=begin.isoformat(), ends_at=end.isoformat())

    workers = [broker.worker, broker.children[-1]]
    turns = 0
    while datetime.fromisoformat(clock(broker)) < end:
        # Between two faults times have to pass: the pauses are the load, and nothing is awaited by them.
        worker = workers[turns % 2]
        time.sleep(2)
        if turns >= FAULTS:
            continue
        if turns % 3 == 2:
            os.killpg(worker.pid, signal.SIGSTOP)
            time.sleep(3)
            os.killpg(worker.pid, signal.SIGCONT)
        else:
            worker.kill()
            worker.start()
        turns += 1
    eventually(lambda: all(plan.shown["next_at"] is None for plan in plans[-3:]), within_seconds=60)
    eventually(lambda: firings(broker) == 0, within_seconds=60)

    with psycopg.connect(broker.database_url) as session:
        topic = session.execute("SELECT id FROM topic WHERE name = %s", [first.topic]).fetchone()
    with psycopg.connect(broker.database_of(first.topic)) as session:
        stored = Counter(session.execute(STORED, topic).fetchall())
        print("late by p50, p99 and at most, ms:", *session.execute(LATE, topic).fetchall())
    wanted = {
        (plan.name, (begin + timedelta(seconds=second)).isoformat().replace("+00:00", "Z"))
        for plan in plans
        for second in range(SECONDS)
    }
    assert turns >= min(FAULTS, 2)
    assert set(stored) == wanted
    assert max(stored.values()) == 1


def clock(broker: RunningBroker) -> str:
    """The database's time, to the second."""
    with psycopg.connect(broker.database_url) as session:
        row = session.execute("SELECT date_trunc('second', clock_timestamp())").fetchone()
    assert row is not None
    return str(row[0].isoformat())


def firings(broker: RunningBroker) -> int:
    """Firings that are not settled."""
    with psycopg.connect(broker.database_url) as session:
        row = session.execute("SELECT count(*) FROM schedule_firing").fetchone()
    assert row is not None
    return int(row[0])
