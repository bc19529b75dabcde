"""The consumer's side: receive and ack in a group, or read a queue by offset."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mqbroker_client.aio.handlers import AsyncHandler
from mqbroker_client.aio.receipts import AsyncReceipts
from mqbroker_client.aio.running import AsyncRunner, stopped_by_signals
from mqbroker_client.core.calls import consumer as calls
from mqbroker_client.core.errors import Forbidden, GroupNotExist
from mqbroker_client.core.handlers import Redeliver
from mqbroker_client.core.messages import Delivery, handles_of
from mqbroker_client.core.results import Page, Received, Settled
from mqbroker_client.core.runs import MAY_NOT_READ, Limits

__all__ = ["AsyncConsumer", "Page", "Received", "Redeliver", "Settled"]


@dataclass(frozen=True, slots=True)
class AsyncConsumer(AsyncReceipts):
    """One consumer group's way to the broker. Safe to share between tasks."""

    async def receive(
        self,
        topic: str,
        *,
        max_messages: int = 32,
        wait_seconds: float = 0,
        invisible_seconds: float | None = None,
        filter: str | Mapping[str, str] | None = None,
        ack: Iterable[Delivery] = (),
    ) -> Received:
        """Receive up to `max_messages` (1 to 32) as soon as there is one, or none after `wait_seconds` (at most 20).

        The messages are hidden from the group for `invisible_seconds`, by default 60: ack or extend them within this
        time, otherwise they are handed out again. `filter` is a tag expression (`"paid || shipped"`) or `{"sql": "price
        > 10"}`. The broker creates the group at its first receive, unless AUTO_CREATE_TOPICS is off. The numbers are
        defaults of the broker's settings. Raises `MessageIllegal` or `FilterIllegal`.

        Deliveries given as `ack` are acked before the receive begins, in the same request, even if the receive fails.
        The result's `acked` has their statuses, like the result of `ack`.
        """
        return await self.broker.do(
            calls.receive(
                self.group,
                topic,
                max_messages=max_messages,
                wait_seconds=wait_seconds,
                invisible_seconds=invisible_seconds,
                filter=filter,
                ack=handles_of(ack),
            )
        )

    async def pull(self, topic: str, queue_id: int, offset: int, *, max: int = 32, wait_seconds: float = 0) -> Page:
        """Read up to `max` entries of a queue from `offset` on; the broker keeps no state of the reader.

        If there is no entry yet, it waits up to `wait_seconds`. Raises `OffsetOutOfRange` for an offset that the queue
        does not hold; its `problem` has both bounds.
        """
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
        """Give each message to `handler`, in `concurrency` tasks, until SIGTERM, SIGINT or `stop`.

        A message is acked when the handler returns, and nacked with the exception as its reason when it raises;
        `Redeliver(seconds)` chooses the delay. The handler may return a message or a list of messages, which are sent
        with the ack: both are done, or neither is, so the messages are stored once. While a handler runs, its message
        is extended at each third of `invisible_seconds`. In an ordered group no message overtakes another message of
        its queue or key. `ordered` tells whether the group is ordered; None asks the broker (scope `manage`).

        A plain function runs in a thread. A stop ends the long poll, returns messages that no handler has begun, and
        waits `stop_seconds` for running handlers; a coroutine that runs longer is cancelled. Raises the broker's
        refusal that ended the run.
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
            if limits.ordered is None:
                limits = replace(limits, ordered=await self._asked_ordered())
            await AsyncRunner(self, topic, handler, limits).run(stop)

    async def _asked_ordered(self) -> bool:
        try:
            return await self.is_ordered()
        except Forbidden as error:
            raise ValueError(MAY_NOT_READ) from error
