"""The metrics of requests: how many of each call were answered, with which status, and how soon."""

import subprocess
import sys
from pathlib import Path

from mqbroker_client import Consumer, Producer
from prometheus_client.parser import text_string_to_metric_families

from console.monitoring import requests
from mqbroker.api.routes import routes
from mqbroker.embedded.commands import ROOT
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

Samples = dict[tuple[str, str, str], float]


def samples(broker: RunningBroker) -> Samples:
    """The numbers of requests now: by metric, call, and status or bound."""
    text = subprocess.run(
        ["curl", "-s", "-H", "Authorization: Bearer mq_of_the_tests", f"{broker.url}/metrics"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {
        (sample.name, sample.labels["call"], sample.labels.get("status", sample.labels.get("le", ""))): sample.value
        for family in text_string_to_metric_families(text)
        if family.name.startswith("mqbroker_request")
        for sample in family.samples
    }


def grown(before: Samples, now: Samples) -> Samples:
    return {key: value - before.get(key, 0) for key, value in now.items() if value != before.get(key, 0)}


def test_answers_are_counted_by_call_and_status_and_by_their_time(
    broker: RunningBroker, wire: Wire, producer: Producer, consumer: Consumer, orders: str
) -> None:
    before = samples(broker)
    for number in range(5):
        producer.send(orders, f"order {number}".encode())
    wire.post("/v1/messages", {"topic": "no good name", "body": "x"})
    producer.begin(orders, b"order").commit()
    consumer.receive("nothing-comes-here", wait_seconds=1)
    wire.get("/v1/topics")

    found = grown(before, samples(broker))

    total = "mqbroker_requests_total"
    assert found[total, "send", "201"] == 5
    assert found[total, "send", "422"] == 1
    assert (found[total, "begin", "201"], found[total, "end", "200"]) == (1, 1)
    assert found[total, "receive", "200"] >= 1
    assert found[total, "other", "200"] >= 1
    bucket, count = "mqbroker_request_seconds_bucket", "mqbroker_request_seconds_count"
    assert found[count, "send", ""] == found[bucket, "send", "+Inf"] == 6
    # A receive that waited for a second is in no bucket below it.
    assert (bucket, "receive", "0.5") not in found
    assert found[bucket, "receive", "2.5"] >= 1
    assert 0.9 < found["mqbroker_request_seconds_sum", "receive", ""] < 60


def test_buckets_grow_towards_the_last(broker: RunningBroker, producer: Producer, orders: str) -> None:
    producer.send(orders, b"order")

    now = samples(broker)

    bounds = [*map(str, requests.BOUNDS), "+Inf"]
    numbers = [now["mqbroker_request_seconds_bucket", "send", bound] for bound in bounds]
    assert numbers == sorted(numbers)
    assert numbers[-1] == now["mqbroker_request_seconds_count", "send", ""]


def test_every_call_of_the_data_plane_is_counted_by_its_own_name() -> None:
    names = [view.__name__ for route in routes for view in route.views.values()]

    assert len(set(names)) == len(names)
    assert len(names) < requests.MAX_CALLS


def test_the_counts_are_those_of_all_processes_of_a_port_and_outlive_them(tmp_path: Path) -> None:
    script = """
import os
import django
os.environ["DJANGO_SETTINGS_MODULE"] = "mqbroker.settings"
django.setup()
from console.monitoring import requests

class Route:
    views = {"POST": lambda: None}

[call] = Route.views.values()
call.__name__ = "call"

for _ in range(3):
    if not (child := os.fork()):
        other, tallies = requests.Calls().tallies([Route])
        for _ in range(1000):
            tallies[call].count(201, 0.0)
        os._exit(0)
    os.waitpid(child, 0)
[found] = requests.answered(["other", "call"])
print(found.call, found.buckets[-1], found.statuses)
"""
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert printed == "call ('+Inf', 3000) [('201', 3000)]\n"
