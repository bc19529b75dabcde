"""The consumer's side, for tasks: receive and ack in a group, or read a queue by offset."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mqbroker_client.aio.connection import AsyncBroker
from mqbroker_client.aio.running import AsyncHandler, AsyncRunner, stopped_by_signals
from mqbroker_client.calls import consumer as calls
from mqbroker_client.consumers import handles_of
from mqbroker_client.errors import GroupNotExist
from mqbroker_client.messages import Delivery
from mqbroker_client.results import Page, Settled
from mqbroker_client.running import Limits


@dataclass(frozen=True, slots=True)
class AsyncConsumer:
    """One consumer group's way to the broker; as `Consumer`."""

    broker: AsyncBroker
    group: str

    async def receive(
        self,
        topic: str,
        *,
        max_messages: int = 32,
        wait_seconds: float = 0,
        invisible_seconds: float | None = None,
        filter: str | Mapping[str, str] | None = None,
    ) -> list[Delivery]:
        """Up to `max_messages` as soon as there is one, or none after `wait_seconds`; as `Consumer.receive`."""
        return await self.broker.do(
            calls.receive(
                self.group,
                topic,
                max_messages=max_messages,
                wait_seconds=wait_seconds,
                invisible_seconds=invisible_seconds,
                filter=filter,
            )
        )

    async def ack(self, deliveries: Iterable[Delivery]) -> list[Settled]:
        """Done: a delivery with the status 200 never comes again to the group; as `Consumer.ack`."""
        handles = handles_of(deliveries)
        return await self.broker.do(calls.ack(self.group, handles)) if handles else []

    async def nack(
        self, deliveries: Iterable[Delivery], *, delay_seconds: float | None = None, reason: str | None = None
    ) -> list[Settled]:
        """Not done: they come again after a delay; as `Consumer.nack`."""
        handles = handles_of(deliveries)
        nack = calls.nack(self.group, handles, delay_seconds=delay_seconds, reason=reason)
        return await self.broker.do(nack) if handles else []

    async def extend(self, deliveries: Iterable[Delivery], *, invisible_seconds: float) -> list[Settled]:
        """More time: they stay hidden from the group for `invisible_seconds` from now."""
        handles = handles_of(deliveries)
        return await self.broker.do(calls.extend(self.group, handles, invisible_seconds)) if handles else []

    async def pull(self, topic: str, queue_id: int, offset: int, *, max: int = 32, wait_seconds: float = 0) -> Page:
        """Read up to `max` entries of a queue from `offset` on; as `Consumer.pull`."""
        return await self.broker.do(calls.pull(topic, queue_id, offset, max, wait_seconds))

    async def is_ordered(self) -> bool:
        """Whether the group is ordered; False before its first receive. The API key needs the scope `manage`."""
        try:
            return await self.broker.do(calls.is_ordered(self.group))
        except GroupNotExist:
            return False

    async def run(
        self,
        topic: str,
        handler: AsyncHandler,
        *,
        concurrency: int = 8,
        ordered: bool | None = None,
        filter: str | Mapping[str, str] | None = None,
        invisible_seconds: float = 60.0,
        wait_seconds: float = 20.0,
        stop_seconds: float = 30.0,
        stop: asyncio.Event | None = None,
    ) -> None:
        """Give each message to `handler`, in `concurrency` tasks, until SIGTERM, SIGINT or `stop`; as `Consumer.run`.

        A plain function runs in a thread. A handler that runs longer than `stop_seconds` after a stop is cancelled.
        """
        limits = Limits(
            concurrency=concurrency,
            ordered=ordered,
            filter=filter,
            invisible_seconds=invisible_seconds,
            wait_seconds=wait_seconds,
            stop_seconds=stop_seconds,
        )
        stop = stop or asyncio.Event()
        async with stopped_by_signals(stop):
            await AsyncRunner(self, topic, handler, limits).run(stop)
