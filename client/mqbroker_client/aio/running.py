"""Runs consumers in an event loop. `mqbroker_client.core.running` does the same with threads."""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from mqbroker_client.aio.handlers import AsyncHandler
from mqbroker_client.aio.hooks import entered
from mqbroker_client.aio.receipts import AsyncReceipts, give_back, keep, settle
from mqbroker_client.core import errors, signals
from mqbroker_client.core.handlers import messages_of
from mqbroker_client.core.hooks import handled
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.retries import Retry, round_pause_seconds
from mqbroker_client.core.runs import Limits, is_final

log = logging.getLogger(__name__)

# Time in which a cancelled task may end. A task that waits for a plain function ends only when the function returns.
CANCEL_SECONDS = 1.0


class AsyncRunner:
    """One run of a consumer: a task that receives, a task that extends, and a task for each message being handled."""

    def __init__(self, consumer: AsyncReceipts, topic: str, handler: AsyncHandler, limits: Limits) -> None:
        self._consumer = consumer
        self._topic = topic
        self._handler = handler
        self._limits = limits
        self._hand: dict[asyncio.Task[None], Delivery] = {}
        self._free = asyncio.Semaphore(limits.concurrency)
        self._begun: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._stopping = asyncio.Event()
        self._failed: BaseException | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until the event is set or this task is cancelled. Raises the broker's refusal that ended the run."""
        self._stopping = stop
        receiving = asyncio.create_task(self._receive())
        extending = asyncio.create_task(self._extend())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([receiving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            receiving.cancel()
            try:
                await self._stop()
            finally:
                # Waits even if this task is cancelled a second time, so that no part of the run stays.
                for task in (extending, *self._hand):
                    task.cancel()
        if self._failed is not None:
            raise self._failed
        with suppress(asyncio.CancelledError):
            await receiving

    async def _stop(self) -> None:
        unbegun = {task: delivery for task, delivery in self._hand.items() if task not in self._begun}
        for task in unbegun:
            task.cancel()
        await give_back(self._consumer, self._topic, unbegun.values())
        if self._begun:
            _, late = await asyncio.wait(self._begun, timeout=self._limits.stop_seconds)
            for task in late:
                task.cancel()
            if late:
                log.warning("%d messages of %s were cancelled: they are handed out again", len(late), self._topic)
                await asyncio.wait(late, timeout=CANCEL_SECONDS)

    async def _receive(self) -> None:
        broker = self._consumer.broker
        failures = 0
        while True:
            while (wanted := self._wanted()) <= 0:
                await self._one_settled()
            try:
                receive = self._limits.receive(self._consumer.group, self._topic, wanted)
                received = await broker.do(receive, retry=Retry(1, broker.retry.seconds))
                failures = 0
            except errors.BrokerError as error:
                if is_final(error):
                    raise
                failures += 1
                log.warning("%s was not received by %s: %s", self._topic, self._consumer.group, error)
                await asyncio.sleep(round_pause_seconds(failures))
                continue
            for delivery in received:
                self._hand[asyncio.create_task(self._handle(delivery))] = delivery

    def _wanted(self) -> int:
        is_alone = any(delivery.alone for delivery in self._hand.values())
        return self._limits.wanted(len(self._hand), is_alone=is_alone)

    async def _one_settled(self) -> None:
        """Wait until there is room for another message."""
        self._room.clear()
        await self._room.wait()

    async def _extend(self) -> None:
        while True:
            await asyncio.sleep(self._limits.invisible_seconds / 3)
            deliveries = list(self._hand.values())
            await keep(self._consumer, self._topic, deliveries, invisible_seconds=self._limits.invisible_seconds)

    async def _handle(self, delivery: Delivery) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            async with self._free:
                # Waits for earlier deliveries; no later delivery is received meanwhile. So if this delivery kills the
                # process, no other handler is running.
                while delivery.alone and len(self._hand) > 1:
                    await self._one_settled()
                self._begun.add(task)
                error, messages = await self._outcome(delivery)
                await settle(self._consumer, self._topic, delivery, error, messages, stopping=self._stopping)
                if error is not None and not isinstance(error, Exception | asyncio.CancelledError):
                    self._failed = self._failed or error
                    self._stopping.set()
        finally:
            self._begun.discard(task)
            self._hand.pop(task, None)
            self._room.set()

    async def _outcome(self, delivery: Delivery) -> tuple[BaseException | None, Sequence[Message]]:
        try:
            context = handled(self._consumer.group, self._topic, delivery)
            # The trace context also applies in `to_thread`.
            async with entered(self._consumer.broker.hooks, context):
                if inspect.iscoroutinefunction(self._handler):
                    found = await self._handler(delivery)
                else:
                    found = await asyncio.to_thread(self._handler, delivery)
                    if inspect.isawaitable(found):
                        found = await found
                context.result = found
                return None, messages_of(found)
        except GeneratorExit:
            # The event loop was closed while this task was running.
            raise
        except BaseException as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # The handler belongs to the program, and may raise anything: a task that it awaited may have been
            # cancelled. An exception that is meant to end a program ends the run.
            log.exception("message %s of %s was not handled", delivery.message.message_id, self._topic)
            return error, ()


@asynccontextmanager
async def stopped_by_signals(stop: asyncio.Event) -> AsyncIterator[None]:
    """SIGTERM and SIGINT set the event, where the event loop runs in the main thread."""
    loop = asyncio.get_running_loop()

    def set_stop() -> None:
        with suppress(RuntimeError):  # a closed event loop has no run to stop
            loop.call_soon_threadsafe(stop.set)

    with signals.heard(set_stop):
        yield
