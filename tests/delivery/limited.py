"""A topic, and a group with limits that receives its messages; and how its time passes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from tests.broker import characters, deliveries
from tests.broker.running import RunningBroker
from tests.broker.wire import Answer, Document

LATER = "UPDATE pace SET due_at = due_at - make_interval(secs => %s) FROM consumer_group AS g WHERE g.name = %s"


def bodies(entries: Sequence[Document]) -> list[str]:
    """The bodies of deliveries, in their order."""
    return [entry["message"]["body"] for entry in entries]


def values(entries: Sequence[Document]) -> list[str]:
    """The values of deliveries, sorted: each body is its value and its number."""
    return sorted(body.rpartition(" ")[0] for body in bodies(entries))


@dataclass
class LimitedGroup:
    """A topic of two queues, and a group with limits. Each body is the value of a message and its number."""

    broker: RunningBroker
    topic: str = field(default_factory=lambda: characters.name("orders"))
    name: str = field(default_factory=lambda: characters.name("limited"))

    def put(self, **settings: object) -> Answer:
        """Creates the group, or changes its settings. Retries come at once unless the settings say otherwise."""
        policy = {"retry_policy": {"kind": "table", "delay_seconds": [0]}, **settings}
        return self.broker.wire().call("PUT", f"/v1/consumer-groups/{self.name}", json.dumps(policy).encode())

    def limit(self, **limits: object) -> None:
        """Gives the group these limits, by the property `tenant` unless they say otherwise."""
        answer = self.put(limits={"by": "property:tenant", **limits})
        assert answer.status in (200, 201), answer

    def send(self, value: str, count: int = 1, first: int = 0) -> None:
        """Sends messages of a value: their property `tenant` and their sharding key, both missing for ""."""
        self._send([(value, number) for number in range(first, first + count)])

    def send_each(self, values: Sequence[str], number: int) -> None:
        """Sends a message of each value, with this number."""
        self._send([(value, number) for value in values])

    def _send(self, messages: Sequence[tuple[str, int]]) -> None:
        operations: list[Document] = []
        for value, number in messages:
            of_value = {"properties": {"tenant": value}, "sharding_key": value} if value else {}
            operations.append({"op": "send", "topic": self.topic, "body": f"{value} {number}", **of_value})
        results = self.broker.wire().bulk(*operations)
        assert {result["status"] for result in results} <= {200, 201}, results

    def receive(self, count: int = 32, web: int = 0, **more: object) -> list[Document]:
        """What the group is handed now, at most `count` messages."""
        asked = {"topic": self.topic, "max_messages": count, **more}
        answer = self.broker.wire(web).post(f"/v1/consumer-groups/{self.name}/receive", asked)
        assert answer.status == 200, answer
        found: list[Document] = answer.document["messages"]
        return found

    def settle(self, verb: str, entries: Sequence[Document], web: int = 0, **more: object) -> None:
        """Acks, nacks, returns or gives up deliveries."""
        asked = {"receipt_handles": [entry["receipt_handle"] for entry in entries], **more}
        answer = self.broker.wire(web).post(f"/v1/consumer-groups/{self.name}/{verb}", asked)
        assert {one["status"] for one in answer.document["results"]} == {200}, answer

    def deliveries_expire(self) -> None:
        """Lets the invisible time of all that is in flight be over."""
        with psycopg.connect(self.broker.database_of(self.topic), autocommit=True) as connection:
            deliveries.their_time_passes(connection, self.name)

    def time_passes(self, seconds: float) -> None:
        """Lets so much time pass for the rates of the values."""
        with psycopg.connect(self.broker.database_of(self.topic), autocommit=True) as connection:
            connection.execute(LATER + " AND pace.group_id = g.id", (seconds, self.name))
