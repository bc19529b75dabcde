"""Statistics and metrics: what the broker says of itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker import characters, databases
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.control.conftest import SETTINGS
from tests.control.operators import Operator

FIGURES = ("messages", "entries", "halves", "commits", "rollbacks", "discarded", "checks")


def figures(operator: Operator) -> dict[str, tuple[int, int]]:
    """Each figure, in all and of the last hour."""
    stats = operator.reads("/v1/stats")
    return {name: (stats["totals"][name], stats["last_hour"][name]["count"]) for name in FIGURES}


def trade(operator: Operator, shop: str, orders: str) -> None:
    """Three messages, and four transactions of which two are committed and one is rolled back."""
    for _ in range(3):
        operator.make("/v1/messages", topic=orders, body="order")
    begun = [
        operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order").document["transaction_id"]
        for _ in range(4)
    ]
    for transaction_id, state in zip(begun, ("COMMIT", "COMMIT", "ROLLBACK"), strict=False):
        operator.make(f"/v1/transactions/{transaction_id}/end", producer_group=shop, state=state)


@pytest.fixture
def alone(prepared: str, broker: RunningBroker, tmp_path: Path) -> Iterator[Operator]:
    """An operator of a broker in which nothing else happens: retries that other tests left would be counted, too."""
    with databases.copied(prepared) as database_url:
        settings, redis_url = SETTINGS, broker.environment["REDIS_URL"]
        with RunningBroker(tmp_path, database_url, redis_url, settings, tasks=False) as running:
            yield Operator(running.url, API_KEY)


def test_stats_count_what_was_done(alone: Operator, shop: str, orders: str) -> None:
    expected = dict.fromkeys(FIGURES, (0, 0)) | {
        "messages": (7, 7),
        "entries": (5, 5),
        "halves": (4, 4),
        "commits": (2, 2),
        "rollbacks": (1, 1),
    }

    trade(alone, shop, orders)

    eventually(lambda: figures(alone) == expected)


def test_a_rate_is_a_count_per_second(operator: Operator, orders: str) -> None:
    operator.make("/v1/messages", topic=orders, body="order")

    stats = eventually(lambda: (found := operator.reads("/v1/stats"))["last_minute"]["messages"]["count"] and found)

    for window, seconds in (("last_minute", 60), ("last_hour", 3600)):
        assert stats[window]["seconds"] == seconds
        for name in FIGURES:
            count, rate = stats[window][name]["count"], stats[window][name]["per_second"]
            assert rate == pytest.approx(count / seconds, abs=0.00051)
    assert not stats["totals"]["estimated"]


def samples(operator: Operator) -> dict[str, float]:
    """The metrics of a web process, each with its labels as Prometheus writes them."""
    lines = operator.page("/metrics").text.splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(number) for name, _, number in pairs}


def test_every_web_process_tells_the_same_metrics(
    operator: Operator, distant_operator: Operator, shop: str, orders: str
) -> None:
    group = characters.name("coupon-service")
    operator.make("/v1/transactions", producer_group=shop, topic=orders, body="order")
    two = [{"topic": orders, "body": "order"}, {"topic": f"{orders}-mail", "body": "mail"}]
    operator.make("/v1/transactions", producer_group=shop, messages=two)
    for _ in range(3):
        operator.make("/v1/messages", topic=orders, body="order", queue_id=0)
    operator.make("/v1/messages", topic=orders, body="order", delay_seconds=600)
    operator.make(f"/v1/consumer-groups/{group}/receive", topic=orders, max_messages=1)
    operator.put(f"/v1/producer-groups/{shop}")
    operator.make(f"/v1/producer-groups/{shop}/endpoints", url="http://127.0.0.1:9/")

    here, there = samples(operator), samples(distant_operator)

    assert here[f'mqbroker_half_messages{{producer_group="{shop}",state="PREPARED"}}'] == 2
    assert here[f'mqbroker_half_messages_by_topic{{state="PREPARED",topic="{orders}"}}'] == 2
    assert here[f'mqbroker_half_messages_by_topic{{state="PREPARED",topic="{orders}-mail"}}'] == 1
    assert here[f'mqbroker_endpoints{{producer_group="{shop}",state="healthy"}}'] == 1
    assert here[f'mqbroker_entries_total{{topic="{orders}"}}'] == 3
    assert here[f'mqbroker_consumer_lag{{consumer_group="{group}",topic="{orders}"}}'] == 2
    assert 0 < here[f'mqbroker_oldest_unacked_seconds{{consumer_group="{group}",topic="{orders}"}}'] < 60
    assert here[f'mqbroker_deliveries_in_flight{{consumer_group="{group}"}}'] == 1
    assert here["mqbroker_timers"] >= 1
    assert here['mqbroker_segments{state="open"}'] == 1
    assert {name.partition("{")[0] for name in here} == {name.partition("{")[0] for name in there}
    mine = [name for name in here if any(own in name for own in (shop, orders, group)) and "seconds" not in name]
    assert {name: here[name] for name in mine} == {name: there[name] for name in mine}


def test_every_metric_says_what_it_means(operator: Operator) -> None:
    text = operator.page("/metrics").text
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}

    assert all(name.startswith("mqbroker_") for name in names)
    assert names == {
        line.split()[2] for line in text.splitlines() if line.startswith("# HELP") and len(line.split()) > 5
    }


def test_a_key_for_metrics_reads_the_numbers(operator: Operator, broker: RunningBroker) -> None:
    name = characters.name("prometheus")
    key = operator.make("/v1/api-keys", name=name, scopes=["metrics"]).document["key"]
    prometheus = Operator(broker.url, key)

    assert prometheus.page("/metrics").headers["content-type"].startswith("text/plain; version=")
    assert prometheus.reads("/v1/stats")["at"]
