"""The consumer's side: receive and ack in a group, or read a queue by offset."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mqbroker_client.connection import Broker, Document, path
from mqbroker_client.messages import Delivery, Entry


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one receipt: 200, or 410 when its invisible time was over."""

    receipt_handle: str
    status: int


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of a queue. `max_offset` is the next offset to be written."""

    messages: Sequence[Entry]
    next_offset: int
    min_offset: int
    max_offset: int


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
        body: Document = {"topic": topic, "max_messages": max_messages, "wait_seconds": wait_seconds}
        if invisible_seconds is not None:
            body["invisible_seconds"] = invisible_seconds
        if filter is not None:
            body["filter"] = filter
        answer = self.broker.call(
            "POST", path("consumer-groups", self.group, "receive"), body, wait_seconds=wait_seconds
        )
        return [Delivery.read(entry) for entry in answer["messages"]]

    def ack(self, deliveries: Iterable[Delivery]) -> list[Settled]:
        """Done: the group never sees them again, where the answer says 200."""
        return self._settle("ack", deliveries, {})

    def nack(self, deliveries: Iterable[Delivery], *, delay_seconds: float | None = None) -> list[Settled]:
        """Not done: they come again after the group's retry delay, or the one given."""
        return self._settle("nack", deliveries, {} if delay_seconds is None else {"delay_seconds": delay_seconds})

    def extend(self, deliveries: Iterable[Delivery], *, invisible_seconds: float) -> list[Settled]:
        """More time: they stay hidden from the group for `invisible_seconds` from now."""
        return self._settle("extend", deliveries, {"invisible_seconds": invisible_seconds})

    def pull(self, topic: str, queue_id: int, offset: int, *, max: int = 32, wait_seconds: float = 0) -> Page:
        """Read a queue from `offset` on. Nothing is remembered; an offset outside of the queue: `OffsetOutOfRange`."""
        answer = self.broker.call(
            "GET",
            path("topics", topic, "queues", queue_id, "messages"),
            query={"offset": offset, "max": max, "wait_seconds": wait_seconds},
            wait_seconds=wait_seconds,
        )
        return Page(
            [Entry.read(entry) for entry in answer["messages"]],
            answer["next_offset"],
            answer["min_offset"],
            answer["max_offset"],
        )

    def _settle(self, verb: str, deliveries: Iterable[Delivery], more: Document) -> list[Settled]:
        handles = [delivery.receipt_handle for delivery in deliveries]
        if not handles:
            return []
        answer = self.broker.call(
            "POST", path("consumer-groups", self.group, verb), {"receipt_handles": handles, **more}
        )
        return [Settled(result["receipt_handle"], result["status"]) for result in answer["results"]]
