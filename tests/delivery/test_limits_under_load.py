"""Twenty consumers of a group with limits, some of which are killed: no value is ever above its limits."""

import os
import random
import secrets
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.broker.forks import ForkedChild
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.delivery import limited_consumer
from tests.delivery.limited import LimitedGroup
from tests.delivery.limited_consumer import INVISIBLE_SECONDS

# MQ_LIMITS_MESSAGES=50000 is the long run.
MESSAGES = int(os.environ.get("MQ_LIMITS_MESSAGES", "1200"))
VALUES = 200 if MESSAGES >= 50_000 else 40
PROCESSES = 4
IN_FLIGHT, PER_SECOND, BURST = 3, 20.0, 5
KILLS = max(MESSAGES // 1000, 2)
# A trigger notes each delivery that counts, with the number in flight of its value then, by PostgreSQL's own count.
NOTING = """
CREATE SCHEMA limits;
CREATE TABLE limits.handed (value text, at timestamptz, in_flight bigint);
CREATE FUNCTION limits.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO limits.handed
    SELECT new.limit_value, new.received_at, count(*)
    FROM receipt AS r
    WHERE r.group_id = new.group_id AND r.limit_value = new.limit_value AND r.state = 'flight';
    RETURN NULL;
END
$$;
CREATE TRIGGER limits AFTER INSERT ON receipt FOR EACH ROW
WHEN (new.limit_value IS NOT NULL) EXECUTE FUNCTION limits.note();
"""
NO_MORE = "DROP TRIGGER limits ON receipt; DROP SCHEMA limits CASCADE"
HANDED = "SELECT value, extract(EPOCH FROM at)::float, in_flight FROM limits.handed ORDER BY at"
Line = tuple[float, str, str, str]


@pytest.mark.chaos
def test_no_value_is_above_its_limits_while_consumers_are_killed(broker: RunningBroker, tmp_path: Path) -> None:
    group = LimitedGroup(broker)
    own: dict[str, object] = {f"free-{number}": {} for number in range(VALUES // 10)}
    group.limit(in_flight=IN_FLIGHT, per_second=PER_SECOND, burst=BURST, values=own)
    values = [*own, *(f"value-{number}" for number in range(VALUES - len(own)))]
    for number in range(MESSAGES // VALUES):
        group.send_each(values, number)
    with noted(broker, group.topic) as connection, crowd(broker, group, tmp_path) as consumers:
        for _ in range(KILLS):
            time.sleep(random.uniform(0.1, 0.5))
            victim = random.choice(consumers)
            victim.kill()
            victim.start()
        wanted = {f"{value} {number}" for value in values for number in range(MESSAGES // VALUES)}
        eventually(lambda: done(tmp_path) >= wanted, within_seconds=120)
        handed = connection.execute(HANDED).fetchall()

    largest = Counter[str]()
    for value, _, in_flight in handed:
        largest[value] = max(largest[value], in_flight)
    print(
        f"{len(wanted)} messages, {KILLS} kills, {len(handed)} deliveries that count, at most {max(largest.values())}"
    )
    assert max(largest.values()) == IN_FLIGHT
    assert {value for value in largest if value.startswith("free")} == set()
    assert above_rate([(value, at) for value, at, _ in handed]) == []
    assert {value: count for value, count in at_once(tmp_path).items() if count > IN_FLIGHT and value not in own} == {}


@contextmanager
def noted(broker: RunningBroker, topic: str) -> Iterator[psycopg.Connection[Any]]:
    """A session in the topic's database, where deliveries that count are noted."""
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        connection.execute(NOTING)
        try:
            yield connection
        finally:
            connection.execute(NO_MORE)


@contextmanager
def crowd(broker: RunningBroker, group: LimitedGroup, folder: Path) -> Iterator[list[Child]]:
    """The processes of the consumers."""
    consumers: list[Child] = []
    for number in range(PROCESSES):
        name = f"consumer-{number}-{secrets.token_hex(2)}"
        diary = str(folder / f"{name}.diary")
        command = [sys.executable, "-m", limited_consumer.__name__, diary, group.topic, group.name, API_KEY, broker.url]
        consumers.append(ForkedChild(name, command, broker.environment, folder / f"{name}.log", ROOT))
    try:
        for consumer in consumers:
            consumer.start()
        yield consumers
    finally:
        for consumer in consumers:
            consumer.kill()


def lines(diary: Path) -> list[Line]:
    """The lines of a diary: time, what, delivery, body."""
    whole = [line.split(" ", 3) for line in diary.read_text().splitlines()]
    return [(float(time), what, delivery, body) for time, what, delivery, body in whole]


def done(folder: Path) -> set[str]:
    """The bodies of the messages that were done."""
    return {body for diary in folder.glob("*.diary") for _, what, _, body in lines(diary) if what == "done"}


def at_once(folder: Path) -> dict[str, int]:
    """How many messages of each value consumers worked with at once, at most, by their own account."""
    changes: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for diary in folder.glob("*.diary"):
        ended = {delivery: time for time, what, delivery, _ in lines(diary) if what == "done"}
        for began, what, delivery, body in lines(diary):
            if what == "took":
                # A killed consumer works no longer; after its invisible time a delivery is not in flight.
                end = min(ended.get(delivery, began), began + INVISIBLE_SECONDS / 2)
                changes[body.rpartition(" ")[0]] += [(began, 1), (end, -1)]
    return {value: most(of_value) for value, of_value in changes.items()}


def most(changes: list[tuple[float, int]]) -> int:
    """The largest sum of changes in the order of their times."""
    total = largest = 0
    for _, change in sorted(changes):
        total += change
        largest = max(largest, total)
    return largest


def above_rate(handed: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The deliveries for which the bucket of their value had no token."""
    buckets: dict[str, tuple[float, float]] = {}
    found: list[tuple[str, float]] = []
    for value, at in handed:
        tokens, since = buckets.get(value, (float(BURST), at))
        tokens = min(tokens + (at - since) * PER_SECOND, BURST) - 1
        buckets[value] = tokens, at
        if tokens < -0.001:
            found.append((value, at))
    return found


def test_the_checks_find_what_is_above_its_limit(tmp_path: Path) -> None:
    times = [0.0] * BURST
    assert above_rate([("a", at) for at in times]) == []
    assert above_rate([("a", at) for at in [*times, 1 / PER_SECOND]]) == []
    assert above_rate([("a", at) for at in [*times, 0.9 / PER_SECOND]]) == [("a", 0.9 / PER_SECOND)]

    (tmp_path / "one.diary").write_text("1 took x a 0\n1 took y a 1\n2 done x a 0\n3 took z a 2\n")
    assert at_once(tmp_path) == {"a": 1}
    (tmp_path / "two.diary").write_text("1.5 took w a 3\n2.5 done w a 3\n")
    assert at_once(tmp_path) == {"a": 2}
