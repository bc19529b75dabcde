"""The consumer's side: receive and ack in a group, or read a queue by offset."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqbroker_client.calls import consumer as calls
from mqbroker_client.connection import Broker
from mqbroker_client.errors import GroupNotExist
from mqbroker_client.handlers import Handler
from mqbroker_client.messages import Delivery
from mqbroker_client.results import Page, Settled
from mqbroker_client.running import Limits, Redeliver, Runner, stopped_by_signals

__all__ = ["Consumer", "Page", "Redeliver", "Settled"]


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
        """Up to `max_messages` (1 to 32) as soon as there is one, or none after `wait_seconds` (20 at most).

        They are hidden from the group for `invisible_seconds`, by default 60: ack or extend them within that time, or
        they are handed out again. `filter` is a tag expression (`"paid || shipped"`) or `{"sql": "price > 10"}`. The
        group is made at its first receive, unless the broker's AUTO_CREATE_TOPICS is off. The numbers are defaults of
        the broker's settings. Raises `MessageIllegal` or `FilterIllegal` for what it does not take.
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
        """Done: a delivery with the status 200 never comes again to the group.

        410: its invisible time was over, and the message comes, or came, again.
        """
        handles = handles_of(deliveries)
        return self.broker.do(calls.ack(self.group, handles)) if handles else []

    def nack(
        self, deliveries: Iterable[Delivery], *, delay_seconds: float | None = None, reason: str | None = None
    ) -> list[Settled]:
        """Not done: they come again after `delay_seconds`, or else after the delay of the group's retry policy.

        After the group's last retry a message is a dead letter. The reason, of 1,000 characters at most, is kept with
        the message's trace. The statuses are those of `ack`.
        """
        handles = handles_of(deliveries)
        nack = calls.nack(self.group, handles, delay_seconds=delay_seconds, reason=reason)
        return self.broker.do(nack) if handles else []

    def extend(self, deliveries: Iterable[Delivery], *, invisible_seconds: float) -> list[Settled]:
        """More time: they stay hidden from the group for `invisible_seconds` from now.

        The statuses are those of `ack`.
        """
        handles = handles_of(deliveries)
        return self.broker.do(calls.extend(self.group, handles, invisible_seconds)) if handles else []

    def pull(self, topic: str, queue_id: int, offset: int, *, max: int = 32, wait_seconds: float = 0) -> Page:
        """Read up to `max` entries of a queue from `offset` on; the broker remembers nothing of it.

        Without an entry there it waits up to `wait_seconds`. Raises `OffsetOutOfRange` for an offset that the queue
        does not hold, with both bounds in its `problem`.
        """
        return self.broker.do(calls.pull(topic, queue_id, offset, max, wait_seconds))

    def is_ordered(self) -> bool:
        """Whether the group is ordered; False before its first receive. The API key needs the scope `manage`."""
        try:
            return self.broker.do(calls.is_ordered(self.group))
        except GroupNotExist:
            return False

    def run(
        self,
        topic: str,
        handler: Handler,
        *,
        concurrency: int = 8,
        ordered: bool | None = None,
        filter: str | Mapping[str, str] | None = None,
        invisible_seconds: float = 60.0,
        wait_seconds: float = 20.0,
        stop_seconds: float = 30.0,
        stop: threading.Event | None = None,
    ) -> None:
        """Give each message to `handler`, in `concurrency` threads, until SIGTERM, SIGINT or `stop`.

        A message is acked when the handler returns, and nacked with the exception as its reason when it raises;
        `Redeliver(seconds)` chooses the delay. While a handler runs, its message is extended at each third of
        `invisible_seconds`. In an ordered group no message overtakes another one of its queue, or key; `ordered`
        says whether the group is, None asks the broker (scope `manage`).

        A stop ends the long poll, gives back what no handler has begun, and waits `stop_seconds` for those that run.
        Raises the refusal of the broker that ended the run.
        """
        limits = Limits(
            concurrency=concurrency,
            ordered=ordered,
            filter=filter,
            invisible_seconds=invisible_seconds,
            wait_seconds=wait_seconds,
            stop_seconds=stop_seconds,
        )
        stop = stop or threading.Event()
        with stopped_by_signals(stop):
            Runner(self, topic, handler, limits).run(stop)


def handles_of(deliveries: Iterable[Delivery]) -> list[str]:
    """The receipt handles of deliveries, in their order."""
    return [delivery.receipt_handle for delivery in deliveries]
