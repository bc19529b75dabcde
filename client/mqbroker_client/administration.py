"""The few administrative calls that a program makes for itself when it starts; they need the scope `manage`."""

from dataclasses import dataclass
from typing import Any

from mqbroker_client.connection import Broker, Document, path


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a producer group is asked. The secret is shown only in the answer that made it."""

    id: str
    url: str
    secret: str


@dataclass(frozen=True, slots=True)
class Admin:
    broker: Broker

    def create_topic(self, topic: str, **settings: Any) -> Document:
        """Create it or change its settings (`queues`, `reserved_hours`, `permission`)."""
        return self.broker.call("PUT", path("topics", topic), settings)

    def create_producer_group(self, group: str, **settings: Any) -> Document:
        return self.broker.call("PUT", path("producer-groups", group), settings)

    def create_consumer_group(self, group: str, **settings: Any) -> Document:
        return self.broker.call("PUT", path("consumer-groups", group), settings)

    def register_endpoint(self, group: str, url: str, **settings: Any) -> Endpoint:
        """Have the group's checks asked at `url`; settings: `max_batch`, `timeout_seconds`, `concurrency`, `secret`."""
        answer = self.broker.call("POST", path("producer-groups", group, "endpoints"), {"url": url, **settings})
        return Endpoint(str(answer["id"]), url, answer["secret"])

    def delete_endpoint(self, group: str, endpoint_id: str) -> None:
        self.broker.call("DELETE", path("producer-groups", group, "endpoints", endpoint_id))
