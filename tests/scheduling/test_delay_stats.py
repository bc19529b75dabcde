"""Stats of delays: backlog, oldest and next message, forecast, and the lateness of releases."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.broker import cells, metrics
from tests.broker.polling import eventually
from tests.broker.running import QUICK, RunningBroker
from tests.broker.wire import Document, Wire

SETTINGS = QUICK | {"MQBROKER_DELAY_LEVELS": "1s 10m 90m"}


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker at which nothing waits yet."""
    with cells.installation(prepared) as database_url:
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"], SETTINGS)
        with broker:
            yield broker


@pytest.fixture(scope="module")
def waiting(broker: RunningBroker) -> tuple[list[Document], list[Document]]:
    """Messages at two levels, and timers, that wait for longer than these tests take."""
    wire = broker.wire()
    levels = [send(wire, delay_level=level) for level in (2, 2, 2, 3)]
    timers = [send(wire, delay_seconds=seconds) for seconds in (1790, 90, 7200)]
    return levels, timers


def test_a_level_has_its_backlog_its_oldest_its_next_and_its_forecast(
    wire: Wire, waiting: tuple[list[Document], list[Document]]
) -> None:
    first, _, _, last = waiting[0]

    levels = {level["level"]: level for level in wire.get("/v1/delay-levels").document["results"]}

    assert {level: (one["delay_seconds"], one["backlog"]) for level, one in levels.items()} == {
        1: (1, 0),
        2: (600, 3),
        3: (5400, 1),
    }
    assert (levels[1]["oldest_at"], levels[1]["next_due_at"], sum(levels[1]["forecast"])) == (None, None, 0)
    for sent, level in ((first, levels[2]), (last, levels[3])):
        # A level keeps times in whole milliseconds.
        assert timedelta(0) <= time_of(level["next_due_at"]) - time_of(sent["deliver_at"]) < timedelta(milliseconds=1)
        assert timedelta(0) <= time_of(level["oldest_at"]) - time_of(sent["stored_at"]) < timedelta(seconds=5)
    # Ten minutes from the send, of which a moment is over.
    assert minutes(levels[2]["forecast"]) == {10: 3}
    assert minutes(levels[3]["forecast"]) == {}


def test_timers_have_the_same(wire: Wire, waiting: tuple[list[Document], list[Document]]) -> None:
    oldest, nearest, _ = waiting[1]

    timers = wire.get("/v1/timers").document

    assert (timers["backlog"], timers["estimated"]) == (3, False)
    assert (timers["oldest_at"], timers["next_due_at"]) == (oldest["stored_at"], nearest["deliver_at"])
    assert minutes(timers["forecast"]) == {2: 1, 30: 1}


def test_lateness_is_that_of_the_releases_of_the_last_hour(wire: Wire) -> None:
    for _ in range(5):
        send(wire, delay_level=1)
        send(wire, delay_seconds=0.5)

    def lateness() -> list[Document] | None:
        found = [wire.get("/v1/delay-levels").document["results"][0], wire.get("/v1/timers").document]
        late: list[Document] = [one["lateness"] for one in found]
        return late if [one["released"] for one in late] == [5, 5] else None

    for late in eventually(lateness):
        assert 0 < late["p50_ms"] <= late["p99_ms"] < 60_000


def test_metrics_have_the_same_numbers_as_the_api(
    broker: RunningBroker, wire: Wire, waiting: tuple[list[Document], list[Document]]
) -> None:
    level = wire.get("/v1/delay-levels").document["results"][0]
    timers = wire.get("/v1/timers").document

    measured = metrics.read(broker.url)

    assert {name: measured["mqbroker_delay_backlog", name] for name in ("1", "2", "3")} == {"1": 0, "2": 3, "3": 1}
    assert measured["mqbroker_timers",] == 3
    assert (
        0
        < measured["mqbroker_delay_oldest_seconds", "2"]
        < 300
        < measured["mqbroker_delay_next_due_seconds", "2"]
        < 600
    )
    assert 0 < measured["mqbroker_delay_oldest_seconds", "timer"] < 300
    assert measured["mqbroker_delay_next_due_seconds", "timer"] < 90
    assert ("mqbroker_delay_oldest_seconds", "1") not in measured
    assert (measured["mqbroker_delay_forecast", "2", "minute"], measured["mqbroker_delay_forecast", "2", "hour"]) == (
        0,
        3,
    )
    assert measured["mqbroker_delay_forecast", "timer", "hour"] == 2
    for name, shown in (("1", level), ("timer", timers)):
        assert measured["mqbroker_delay_released_last_hour", name] == shown["lateness"]["released"]
        for quantile, field in (("0.5", "p50_ms"), ("0.99", "p99_ms")):
            late = shown["lateness"][field]
            assert measured["mqbroker_delay_lateness_seconds", name, quantile] == pytest.approx(late / 1000)


def send(wire: Wire, **delay: float) -> Document:
    """The answer to the send of a delayed message."""
    answer = wire.post("/v1/messages", {"topic": "orders", "body": "order", **delay})
    assert answer.status == 201, answer
    found: Document = answer.document
    return found


def minutes(forecast: list[int]) -> dict[int, int]:
    """The minutes of the coming hour in which something is delivered, from 1 on."""
    assert len(forecast) == 60
    return {minute: deliveries for minute, deliveries in enumerate(forecast, start=1) if deliveries}


def time_of(text: str) -> datetime:
    return datetime.fromisoformat(text)
