"""Delay levels under trouble: the list changes while messages wait, or a process stops in the middle of a release."""

import os
from collections.abc import Iterator
from datetime import datetime
from functools import partial

import psycopg
import pytest

from mqbroker.embedded import commands
from tests.broker import cells, forks
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.broker.tellings import visible_at
from tests.broker.wire import Document, Wire

LEVELS = "MQBROKER_DELAY_LEVELS"
BEFORE, AFTER = "1s 1h 10s 2h", "1s 2s"


@pytest.fixture
def changing(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose list of levels may change."""
    with cells.installation(prepared) as database_url:
        settings = QUICK | {LEVELS: BEFORE}
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"], settings)
        with broker:
            yield broker


def test_a_shortened_level_delivers_at_once_and_a_removed_one_at_its_time(changing: RunningBroker, orders: str) -> None:
    wire = changing.wire()
    shortened = [send(wire, orders, queue=0, delay_level=2) for _ in range(3)]
    removed = [send(wire, orders, queue=1, delay_level=3) for _ in range(3)]
    send(wire, orders, queue=1, delay_level=4)

    restart(changing, AFTER)
    shortened.append(send(wire, orders, queue=0, delay_level=2))
    above = send(wire, orders, queue=2, delay_level=3)

    assert eventually(partial(visible, wire, orders, 0, len(shortened))) == ids(shortened)
    assert eventually(partial(visible, wire, orders, 1, len(removed))) == ids(removed)
    assert all(visible_at(wire, sent["message_id"]) >= due(sent) for sent in (*removed, shortened[-1], above))
    assert (due(above) - stored(above)).total_seconds() == 2
    levels_now = {level["level"]: level for level in wire.get("/v1/delay-levels").document["results"]}
    assert {level: one["delay_seconds"] for level, one in levels_now.items()} == {1: 1, 2: 2, 4: None}
    assert levels_now[4]["backlog"] == 1


def test_a_process_that_stops_in_the_middle_of_a_level_holds_up_nothing_else(
    broker: RunningBroker, wire: Wire, orders: str
) -> None:
    with psycopg.connect(broker.database_of(orders)) as stopped:
        hold_position(stopped, level=1)
        held = [send(wire, orders, queue=0, delay_level=1)]
        others = [send(wire, orders, queue=1, **delay) for delay in ({"delay_level": 3}, {"delay_seconds": 1.2})]

        assert eventually(partial(visible, wire, orders, 1, 2), within_seconds=10) == ids(others)
        assert all(visible_at(wire, sent["message_id"]) >= due(sent) for sent in others)
        assert visible(wire, orders, 0, 1) is None
        held.append(send(wire, orders, queue=0, delay_level=1))

    assert eventually(partial(visible, wire, orders, 0, 2)) == ids(held)
    assert all(visible_at(wire, sent["message_id"]) >= due(sent) for sent in held)


@pytest.mark.parametrize(
    ("levels", "because"),
    [
        ("1s 5x 10s", "level '5x' is no number with a unit"),
        ("1s,5s", "level '1s,5s' is no number with a unit"),
        ("1s -5s", "level '-5s' is no number with a unit"),
        ("5 10s", "level '5' is no number with a unit"),
        ("1s 4000d", "level '4000d' is longer than 3650d"),
        (" ", "no level is given"),
    ],
)
def test_a_list_of_levels_that_is_none_stops_the_start_and_is_named(levels: str, because: str) -> None:
    done = forks.run(commands.manage("check"), os.environ | {LEVELS: levels})

    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith(
        f"{LEVELS}={levels!r} cannot be used ({because}): "
        "give numbers with a unit s, m, h or d between blanks, such as 1s 5s 1m."
    )


def send(wire: Wire, topic: str, *, queue: int, **delay: float) -> Document:
    """The answer to the send of a delayed message."""
    answer = wire.post("/v1/messages", {"topic": topic, "body": "order", "queue_id": queue, **delay})
    assert answer.status == 201, answer
    found: Document = answer.document
    return found


def restart(broker: RunningBroker, levels: str) -> None:
    """Starts every process of a broker again, with another list of levels."""
    broker.close()
    for child in broker.children:
        child.environment[LEVELS] = levels
        child.start()
    broker.wait_until_ready()


def visible(wire: Wire, topic: str, queue: int, count: int) -> list[str] | None:
    """The messages of a queue in their order, once there are so many."""
    page = wire.get(f"/v1/topics/{topic}/queues/{queue}/messages?offset=0").document
    found = [entry["message"]["message_id"] for entry in page.get("messages", ())]
    return found if len(found) >= count else None


def ids(sent: list[Document]) -> list[str]:
    return [one["message_id"] for one in sent]


def due(sent: Document) -> datetime:
    return datetime.fromisoformat(sent["deliver_at"])


def stored(sent: Document) -> datetime:
    return datetime.fromisoformat(sent["stored_at"])


def hold_position(connection: psycopg.Connection, level: int) -> None:
    """Locks the scheduler's position at a level, as another process does that releases there, until the commit."""
    connection.execute(
        "SELECT pg_advisory_xact_lock(id::bigint << 18 | %s) FROM topic WHERE name = 'SCHEDULE_TOPIC_XXXX'",
        (level - 1,),
    )
