"""The consumer's side: receive and ack in a group, or read a queue by offset."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqbroker_client.calls import Call
from mqbroker_client.calls import consumer as calls
from mqbroker_client.connection import Broker
from mqbroker_client.messages import Delivery
from mqbroker_client.results import Page, Settled

__all__ = ["Consumer", "Page", "Settled"]


@dataclass(frozen=True, slots=True)
class Consumer:
    """One consumer group's way to the broker. Safe to share between threads."""

    broker: Broker
    group: str

    def receive(
        self,
        topic: str,
        *,
        max_messages: int = 32,
        wait_seconds: float = 0,
        invisible_seconds: float | None = None,
        filter: str | Mapping[str, str] | None = None,
    ) -> list[Delivery]:
        """Up to `max_messages`, as soon as there is one; none after `wait_seconds`.

        `filter` is a tag expression (`"paid || shipped"`) or `{"sql": "price > 10"}`.
        """
        return self.broker.do(
            calls.receive(
                self.group,
                topic,
                max_messages=max_messages,
                wait_seconds=wait_seconds,
                invisible_seconds=invisible_seconds,
                filter=filter,
            )
        )

    def ack(self, deliveries: Iterable[Delivery]) -> list[Settled]:
        """Done: the group never sees them again, where the answer says 200."""
        handles = handles_of(deliveries)
        return self._settle(calls.ack(self.group, handles)) if handles else []

    def nack(
        self, deliveries: Iterable[Delivery], *, delay_seconds: float | None = None, reason: str | None = None
    ) -> list[Settled]:
        """Not done: they come again after the group's retry delay, or the one given. The reason is in their trace."""
        handles = handles_of(deliveries)
        nack = calls.nack(self.group, handles, delay_seconds=delay_seconds, reason=reason)
        return self._settle(nack) if handles else []

    def extend(self, deliveries: Iterable[Delivery], *, invisible_seconds: float) -> list[Settled]:
        """More time: they stay hidden from the group for `invisible_seconds` from now."""
        handles = handles_of(deliveries)
        return self._settle(calls.extend(self.group, handles, invisible_seconds)) if handles else []

    def pull(self, topic: str, queue_id: int, offset: int, *, max: int = 32, wait_seconds: float = 0) -> Page:
        """Read a queue from `offset` on. Nothing is remembered; an offset outside of the queue: `OffsetOutOfRange`."""
        return self.broker.do(calls.pull(topic, queue_id, offset, max, wait_seconds))

    def _settle(self, call: Call[list[Settled]]) -> list[Settled]:
        return self.broker.do(call)


def handles_of(deliveries: Iterable[Delivery]) -> list[str]:
    return [delivery.receipt_handle for delivery in deliveries]
