"""A crowd of consumers of a group with limits, and what they and PostgreSQL note of its deliveries."""

import secrets
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.processes.child import Child
from tests.broker.forks import ForkedChild
from tests.broker.running import API_KEY, RunningBroker
from tests.delivery import limited_consumer
from tests.delivery.limited import LimitedGroup
from tests.delivery.limited_consumer import INVISIBLE_SECONDS

# A trigger notes each delivery that counts, with the number in flight of its value then, by PostgreSQL's own count.
NOTING = """
CREATE SCHEMA limits;
CREATE TABLE limits.handed (value text, at timestamptz, in_flight bigint);
CREATE FUNCTION limits.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO limits.handed
    SELECT new.limit_value, statement_timestamp(), count(*)
    FROM receipt AS r
    WHERE r.group_id = new.group_id AND r.limit_value = new.limit_value AND r.state = 'flight';
    RETURN NULL;
END
$$;
CREATE TRIGGER limits AFTER INSERT ON receipt FOR EACH ROW
WHEN (new.limit_value IS NOT NULL) EXECUTE FUNCTION limits.note();
"""
NO_MORE = "DROP TRIGGER limits ON receipt; DROP SCHEMA limits CASCADE"
HANDED = "SELECT value, extract(EPOCH FROM at)::float AS at, in_flight FROM limits.handed ORDER BY at"
PROCESSES = 4
Line = tuple[float, str, str, str]


class Noted(NamedTuple):
    """A delivery that counts: when it was handed out, and how many of its value were in flight then."""

    value: str
    at: float
    in_flight: int


@contextmanager
def noted(database: str) -> Iterator[None]:
    """Deliveries that count are noted in this database."""
    _do(database, NOTING)
    try:
        yield
    finally:
        _do(database, NO_MORE)


def _do(database: str, statements: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(statements.encode())


def handed_in(database: str) -> list[Noted]:
    """The noted deliveries of a database, in the order of their times."""
    with psycopg.connect(database) as connection:
        return [Noted(*row) for row in connection.execute(HANDED).fetchall()]


def largest_of(handed: Iterable[Noted]) -> Counter[str]:
    """How many deliveries of each value were in flight at once, at most."""
    largest = Counter[str]()
    for value, _, in_flight in handed:
        largest[value] = max(largest[value], in_flight)
    return largest


@contextmanager
def crowd(broker: RunningBroker, group: LimitedGroup, folder: Path) -> Iterator[list[Child]]:
    """The processes of the consumers, which ask the web processes in turn."""
    consumers: list[Child] = []
    for number in range(PROCESSES):
        name = f"consumer-{number}-{secrets.token_hex(2)}"
        diary = str(folder / f"{name}.diary")
        url = broker.urls[number % len(broker.urls)]
        command = [sys.executable, "-m", limited_consumer.__name__, diary, group.topic, group.name, API_KEY, url]
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


def above_rate(handed: list[tuple[str, float]], per_second: float, burst: int) -> list[tuple[str, float]]:
    """The deliveries, each a value and a time, for which the bucket of their value had no token."""
    buckets: dict[str, tuple[float, float]] = {}
    found: list[tuple[str, float]] = []
    for value, at in handed:
        tokens, since = buckets.get(value, (float(burst), at))
        tokens = min(tokens + (at - since) * per_second, burst) - 1
        buckets[value] = tokens, at
        if tokens < -0.001:
            found.append((value, at))
    return found
