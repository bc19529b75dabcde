"""A topic, a consumer group that receives what is sent to it, and the time of the deliveries of this group."""

from dataclasses import dataclass, field

import psycopg

from tests.broker import characters, deliveries
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator


def let_deliveries_expire(broker: RunningBroker, topic: str, group: str) -> None:
    """Lets the invisible time of all that a group has in flight be over, in the cell of this topic."""
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        deliveries.their_time_passes(connection, group)


@dataclass
class Receiving:
    """Who sends, whatever way, and the group that receives it all."""

    operator: Operator
    topic: str = field(kw_only=True, default_factory=lambda: characters.name("orders"))
    group: str = field(kw_only=True, default_factory=lambda: characters.name("mail"))

    def prepare(self) -> None:
        """Makes topic and group."""
        self.operator.put(f"/v1/topics/{self.topic}", queues=2)
        self.operator.put(f"/v1/consumer-groups/{self.group}", start_at="earliest")

    def receives(self, wait_seconds: float = 5) -> list[Document]:
        """The messages that are handed out now; they are acked."""
        path = f"/v1/consumer-groups/{self.group}"
        asked = {"topic": self.topic, "max_messages": 32, "wait_seconds": wait_seconds}
        found = self.operator.make(f"{path}/receive", **asked).document["messages"]
        if found:
            self.operator.make(f"{path}/ack", receipt_handles=[one["receipt_handle"] for one in found])
        return [one["message"] for one in found]

    def receives_all(self, number: int) -> list[Document]:
        """At least this number of messages. A busy machine may hand out none for longer than one wait."""
        found: list[Document] = []
        in_vain = 0
        while len(found) < number:
            more = self.receives(wait_seconds=10)
            in_vain = 0 if more else in_vain + 1
            assert in_vain < 4, f"{len(found)} of {number} came"
            found += more
        return found + self.receives(wait_seconds=0)
