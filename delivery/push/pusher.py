"""The pusher of a process: receives for each subscription and posts the messages to its server, which settles them.

Messages are received as by any consumer, and hidden for longer than the call may take. So several processes may push
one subscription at once, and when a process dies, what it had in flight is redelivered.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from itertools import islice

import structlog
from django.conf import settings

from delivery.push import protocol, subscribers
from delivery.push.protocol import Pushed
from delivery.push.registry import MAX_SUBSCRIPTIONS
from delivery.push.subscribers import Subscriber
from delivery.push.writing import SETTLE_SECONDS, until_written
from delivery.receipts import failing, settling
from delivery.receive import receives, returns
from delivery.receive.deliveries import Delivery
from delivery.receive.receives import Receive
from delivery.rows import SubscriptionId
from store.commit import writer
from store.db import connections
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.ids import new_id
from store.notices import notifier
from store.process import runtime
from store.process.answer_budget import Hold
from webhooks.caller import Caller
from webhooks.endpoint_answers import Answer

logger = structlog.stdlib.get_logger(__name__)

FIND_WAITING_SUBSCRIPTIONS = Statement(__file__, "find_waiting_subscriptions", SubscriptionId)

# A subscription is read again after this: while nothing is received, and before a call. A pause does not depend on it:
# each call locks the subscription as it begins.
BELIEVED_SECONDS = 1.0
BELIEVED_FOR_CALL_SECONDS = 0.05
WAIT_SECONDS = 1.0
# A push stays blocked in a receive for so long after the last message, and pushes the next one within milliseconds.
# Afterwards beat's next run finds it.
IDLE_SECONDS = 10.0
# A message whose call did not reach the server is offered again after this; the circuit says when a call may begin.
RETURN_SECONDS = 1.0
# A web process has 2 s to end.
CLOSE_SECONDS = 1.5
# For each message, in addition to the 64 KiB that any answer may have.
ANSWER_BYTES_PER_MESSAGE = 512


class Push:
    """The pushing of one subscription in this process: one receiver, and `concurrency` calls at a time."""

    def __init__(self, subscriber: Subscriber, caller: Caller) -> None:
        self._subscriber = subscriber
        self._caller = caller
        self._calls: set[asyncio.Task[None]] = set()
        self._ending = False

    def end(self) -> None:
        """Stops receiving; calls under way are finished."""
        self._ending = True

    async def run(self) -> None:
        """Receives and calls until IDLE_SECONDS after the last message, or until the subscription may not be pushed."""
        # Waits for the calls under way; when the push is cancelled, they are, too.
        async with asyncio.TaskGroup() as calls:
            try:
                await self._receive_until_idle(calls)
            except Refusal as refusal:
                logger.warning("a push stopped", subscription=self._subscriber.name, reason=refusal.detail)
            except Exception:
                logger.exception("a push failed", subscription=self._subscriber.name)

    async def _receive_until_idle(self, calls: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        received_at = loop.time()
        while not self._ending and await self._still_pushed(BELIEVED_SECONDS):
            free = self._subscriber.concurrency - len(self._calls)
            if free <= 0 or not await subscribers.health.may_call(self._subscriber):
                if not self._calls:
                    return
                await asyncio.wait(self._calls, timeout=WAIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            elif await self._receive(calls, free):
                received_at = loop.time()
            elif not self._calls and loop.time() - received_at >= IDLE_SECONDS:
                return
            elif not settings.MAX_WAIT_SECONDS:
                # Long polls are turned off: the receive returned at once.
                await asyncio.sleep(WAIT_SECONDS)

    async def _still_pushed(self, believed_seconds: float) -> bool:
        if self._subscriber.age_seconds < believed_seconds:
            return True
        found = await subscribers.find([self._subscriber.id])
        if not found:
            self.end()
            return False
        self._subscriber = found[0]
        return True

    async def _receive(self, calls: asyncio.TaskGroup, free: int) -> bool:
        """Receives what the free calls can take and begins these calls; returns whether there were messages."""
        subscriber = self._subscriber
        probes = subscriber.circuit.state != "healthy"
        # Deliveries of an ordered group keep their order only within a call.
        one_call = probes or subscriber.ordered
        wanted = Receive(
            topic=subscriber.topic,
            filter=subscriber.filter,
            max_messages=min(subscriber.max_batch * (1 if one_call else free), settings.MAX_RECEIVE_MESSAGES),
            invisible_seconds=_invisible_seconds(subscriber),
            wait_seconds=0 if probes else min(WAIT_SECONDS, settings.MAX_WAIT_SECONDS),
        )
        with contextlib.ExitStack() as holding:
            hold = holding.enter_context(Hold(f"subscription {subscriber.name}"))
            # A group or a topic that was deleted since the subscription was read stays deleted.
            deliveries = await receives.receive(subscriber.group, wanted, hold, makes=False)
            if deliveries:
                begun = await self._begin_calls(calls, deliveries, 1 if one_call else free)
                holding.pop_all()
                calls.create_task(hold.until(begun), name=f"answers of {subscriber.name}")
        return bool(deliveries)

    async def _begin_calls(
        self, calls: asyncio.TaskGroup, deliveries: Sequence[Delivery], most: int
    ) -> list[asyncio.Task[None]]:
        """Begins the calls with these deliveries, so many at most, and gives back the others; returns the calls."""
        subscriber, tasks = self._subscriber, []
        begun = 0
        try:
            # A process that ends has no time for a call that it has not begun.
            if not self._ending and await self._still_pushed(BELIEVED_FOR_CALL_SECONDS):
                parts = protocol.calls(deliveries, subscriber.max_batch)
                for call in islice(parts, most):
                    tasks.append(calls.create_task(self._deliver(call), name=f"push {subscriber.name}"))
                    begun += len(call)
                self._calls.update(tasks)
        finally:
            # The push ends, the subscription may not be pushed any more or cannot be read, or large messages fill more
            # calls than are free.
            rest = [delivery.receipt_handle for delivery in deliveries[begun:]]
            if rest:
                await returns.give_back(subscriber.group, rest, 0)
        return tasks

    async def _deliver(self, call: Sequence[Pushed]) -> None:
        try:
            await self._call(call)
        except Refusal as refusal:
            # They are redelivered when their invisible time is over.
            logger.warning(
                "pushed messages are not settled",
                messages=len(call),
                subscription=self._subscriber.name,
                reason=refusal.detail,
            )
        except Exception:
            logger.exception("a call of a push failed", subscription=self._subscriber.name)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self._calls.discard(task)

    async def _call(self, call: Sequence[Pushed]) -> None:
        subscriber = self._subscriber
        guard = subscribers.PauseGuard(subscriber)
        answer = await self._caller.post(
            subscriber.url,
            await protocol.payload(subscriber.name, subscriber.group, subscriber.topic, call),
            subscriber.secrets,
            f"psh_{new_id()}",
            subscriber.timeout_seconds,
            len(call) * ANSWER_BYTES_PER_MESSAGE,
            guard.held,
            now=subscriber.now(),
        )
        if guard.refused:
            # No sign of the server's health.
            self.end()
            await returns.give_back(subscriber.group, [pushed.receipt_handle for pushed in call], 0)
            return
        settlement = protocol.settle(answer, call)
        if settlement.acked:
            await until_written(lambda: writer.run(settling.Ack(subscriber.group, settlement.acked)), subscriber.name)
        await self._note(settlement.answer)
        for nack, handles in settlement.nacked.items():
            await until_written(partial(failing.nack, subscriber.group, handles, *nack), subscriber.name)
        if settlement.returned:
            await returns.give_back(subscriber.group, settlement.returned, RETURN_SECONDS)

    async def _note(self, answer: Answer) -> None:
        """Keeps what a call shows of the server's health. Where that fails the messages are settled all the same: else
        they would come again, or count a failure that none of them had.
        """
        try:
            # By `_subscriber` as it is now: the calls beside this one may have opened or closed its circuit.
            await subscribers.note(self._subscriber, answer)
        except Refusal as refusal:
            logger.warning("a server's health is not kept", subscription=self._subscriber.name, reason=refusal.detail)


def _invisible_seconds(subscriber: Subscriber) -> float:
    wanted = subscriber.timeout_seconds + SETTLE_SECONDS
    return min(max(wanted, settings.MIN_INVISIBLE_SECONDS), settings.MAX_INVISIBLE_SECONDS)


class Pusher:
    """The pushes of one process: at most one per subscription."""

    def __init__(self) -> None:
        self._pushes: dict[int, tuple[Push, asyncio.Task[None]]] = {}
        self._caller: Caller | None = None

    async def run(self, late_seconds: float = 0) -> None:
        """Begins to push every subscription that has something to push, and is not being pushed here already.

        With `late_seconds` only subscriptions that no process has pushed for so long: the fallback leaves the others to
        beat.
        """
        parameters = {"late_seconds": late_seconds, "max_subscriptions": MAX_SUBSCRIPTIONS}
        rows = await connections.read(FIND_WAITING_SUBSCRIPTIONS, parameters)
        waiting = [row.id for row in rows if row.id not in self._pushes]
        for subscriber in await subscribers.find(waiting) if waiting else ():
            # A worker's task may get here while its process ends.
            if subscriber.id not in self._pushes and not runtime.current().is_closing:
                self._begin(subscriber)

    def _begin(self, subscriber: Subscriber) -> None:
        if self._caller is None:
            self._caller = Caller(settings.WEBHOOK_ALLOWED_NETWORKS)
        # For wake-ups; a web process listens already.
        notifier.start()
        push = Push(subscriber, self._caller)
        task = asyncio.create_task(self._push(subscriber.id, push), name=f"push {subscriber.name}")
        self._pushes[subscriber.id] = push, task

    async def _push(self, subscription_id: int, push: Push) -> None:
        try:
            await push.run()
        finally:
            del self._pushes[subscription_id]

    async def close(self) -> None:
        """Ends the pushes: calls under way have CLOSE_SECONDS; what they leave is redelivered when its time is over."""
        running = list(self._pushes.values())
        for push, _ in running:
            push.end()
        tasks = [task for _, task in running]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()
            self._caller = None


async def run(late_seconds: float = 0) -> None:
    """Begins the pushes of this process; as `Pusher.run`."""
    await runtime.part(Pusher).run(late_seconds)
