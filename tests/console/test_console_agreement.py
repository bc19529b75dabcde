"""Promises that the console's numbers are those of the API and of the metrics."""

import re
from datetime import timedelta
from typing import Any

from tests.broker.polling import eventually
from tests.console.operators import Operator
from tests.console.rows import Broker
from tests.console.test_console_sessions import calls


def document(operator: Operator, path: str) -> Any:
    """What the API answers to the operator's session."""
    answer = calls(operator, "GET", path)
    assert answer.status == 200, answer.document
    return answer.document


def stored(statistics: dict[str, Any], messages: int, rollbacks: int) -> dict[str, Any] | None:
    """The statistics, once they say that so many messages are stored, and so many transactions rolled back."""
    found = (statistics["totals"]["messages"], statistics["last_hour"]["rollbacks"]["count"])
    return statistics if found == (messages, rollbacks) else None


def metric(operator: Operator, name: str, **labels: str) -> int:
    """The number of a metric with these labels."""
    given = ",".join(f'{label}="{value}"' for label, value in labels.items())
    of = f"{{{given}}}" if given else ""
    found = re.search(rf"^{name}{of} (\S+)$", str(document(operator, "/metrics")), re.MULTILINE)
    assert found is not None, f"no metric {name}{of}"
    return int(float(found[1]))


def test_an_ordered_groups_held_and_parked_messages_are_in_flight_nowhere(broker: Broker, ada: Operator) -> None:
    orders, fifo = broker.topic("orders", queues=1), broker.consumer_group("fifo", ordered=True)
    for _ in range(6):
        broker.visible(broker.stored(orders, 0, b"x", timedelta(minutes=1)))
    broker.progress(fifo, orders, 0, next_offset=5)
    for offset, state in enumerate(("held", "parked", "parked", "flight", "flight")):
        broker.receipt(fifo, orders, 0, offset, state, sharding_key=f"customer-{offset}")

    [listed] = ada.sees("consumer-groups/").table("consumer-groups")

    assert listed[3] == "2"
    assert metric(ada, "mqbroker_deliveries_in_flight", consumer_group="fifo") == 2
    assert "In flight 2 " in ada.sees("consumer-groups/fifo/").text


def test_a_groups_lag_is_that_of_the_api_and_of_the_metrics(broker: Broker, ada: Operator) -> None:
    orders, coupons = broker.topic("orders", queues=3), broker.consumer_group("coupons")
    for queue, entries in ((0, 5), (1, 4), (2, 2)):
        for _ in range(entries):
            broker.visible(broker.stored(orders, queue, b"x", timedelta(minutes=1)))
    broker.progress(coupons, orders, 0, next_offset=5)
    broker.progress(coupons, orders, 1, next_offset=1)
    broker.insert("queue_floor", topic_id=orders, queue_id=1, min_offset=2)

    rows = [row[:5] for row in ada.sees("consumer-groups/coupons/").table("progress")]

    shown = document(ada, "/v1/consumer-groups/coupons")["lag"]
    names = ("topic", "queue_id", "next_offset", "max_offset", "lag")
    assert rows == [[str(queue[name]) for name in names] for queue in shown]
    assert ada.sees("consumer-groups/").table("consumer-groups")[0][2] == "4"
    assert metric(ada, "mqbroker_consumer_lag", consumer_group="coupons", topic="orders") == 4


def test_what_a_producer_group_has_pending_is_what_the_api_says(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    for _ in range(3):
        broker.half(shop, orders, b"x", timedelta(minutes=2))
    broker.half(shop, orders, b"x", timedelta(hours=2), discarded_at=broker.now)

    [row] = ada.sees("producer-groups/").table("producer-groups")

    assert row[1] == str(document(ada, "/v1/producer-groups/shop")["pending"]) == "3"
    assert metric(ada, "mqbroker_half_messages", producer_group="shop", state="PREPARED") == 3
    overview = ada.sees("")
    assert (overview.figure("pending-halves"), overview.figure("discarded-halves")) == ("3", "1")


def test_a_levels_backlog_is_that_of_the_api_and_of_the_metrics(broker: Broker, ada: Operator) -> None:
    for minutes in (5, 6, 7):
        broker.delayed(level=5, due_in=timedelta(minutes=minutes))
    broker.released(level=5, next_offset=1)

    rows = {row[0]: row[2] for row in ada.sees("delays/").table("levels")}

    shown = document(ada, "/v1/delay-levels")["results"]
    assert rows == {str(level["level"]): str(level["backlog"]) for level in shown}
    assert rows["5"] == str(metric(ada, "mqbroker_delay_backlog", level="5")) == "2"


def test_the_overviews_totals_are_those_of_the_statistics(broker: Broker, ada: Operator) -> None:
    orders, shop = broker.topic("orders"), broker.producer_group("shop")
    for minutes in (90, 45, 10):
        broker.committed(shop, orders, b"x", timedelta(minutes=minutes))
    broker.rolled_back(shop, orders, timedelta(minutes=3))

    overview = ada.sees("")

    # The API answers from a reading that is at most a second old, and the test before may have stored as many.
    shown = eventually(lambda: stored(document(ada, "/v1/stats"), 4, rollbacks=1))
    assert overview.figure("committed") == str(shown["last_hour"]["commits"]["count"]) == "2"
    assert overview.figure("rolled-back") == str(shown["last_hour"]["rollbacks"]["count"]) == "1"
    assert overview.figure("stored") == str(shown["totals"]["messages"]) == "4"
