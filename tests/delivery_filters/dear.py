"""Filters and messages that cost as much as their bounds allow, and consumers that receive by them."""

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Request, Wire

MESSAGES = 300
CONSUMERS = 8
LOAD_SECONDS = 2.0
LONG = 15_000

PROPERTIES: dict[str, dict[str, str]] = {
    "digits": {"a": "9" * LONG},
    # To part these digits in each way took 8 s in one condition.
    "digits and a letter": {"a": "9" * LONG + "x"},
    "a long text": {"a": "T" * LONG},
    "many properties": {"a": "8" * 64} | {f"property{number}": "9" * 100 for number in range(120)},
}


def dear_filter(number: int) -> dict[str, str]:
    """As many conditions as a filter may have: none takes a message, and none spares the next one."""
    return {"sql": " OR ".join([f"a < -{number + place + 1}" for place in range(40)] + ["a = TRUE"] * 20)}


def long_filter(number: int) -> dict[str, str]:
    """As many words as a filter may have; other ones for each number."""
    return {"sql": f"a IN ({', '.join(str(number * 500 + place) for place in range(450))})"}


class Narrow:
    """A key that may produce to one topic and consume in its groups, and what it asks for."""

    def __init__(self, broker: RunningBroker) -> None:
        self.topic = characters.name("dear")
        scopes = [f"produce:{self.topic}", f"read:{self.topic}", f"consume:{self.topic}-*"]
        made = broker.wire().post("/v1/api-keys", {"name": self.topic, "scopes": scopes}).document
        self.wire = Wire(broker.url, made["key"])

    def stock(self, properties: Mapping[str, str]) -> None:
        """Sends the messages that filters look at."""
        message = {"op": "send", "topic": self.topic, "body": "dear", "properties": properties}
        for _ in range(MESSAGES // 100):
            assert {result["status"] for result in self.wire.bulk(*[message] * 100)} == {201}

    def asks(self, wanted: Mapping[str, Any], wait_seconds: float = 2) -> Request:
        """A receive in a new group, which has all messages before it."""
        asked = {"topic": self.topic, "filter": wanted, "wait_seconds": wait_seconds}
        path = f"/v1/consumer-groups/{self.topic}-{characters.name('group')}/receive"
        return self.wire.ask("POST", path, json.dumps(asked).encode())


def meanwhile(receive: Callable[[int], None]) -> None:
    """Has CONSUMERS receive, again and again, each by a number of its own that rises."""
    ends = time.monotonic() + LOAD_SECONDS

    def receives(consumer: int) -> None:
        number = consumer
        while time.monotonic() < ends:
            receive(number)
            number += CONSUMERS

    with ThreadPoolExecutor(CONSUMERS) as consumers:
        list(consumers.map(receives, range(CONSUMERS)))
