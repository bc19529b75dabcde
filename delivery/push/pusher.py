"""The pusher of a process: receives for each subscription, posts messages to its server, settles them by the answer.

A push receives like any consumer, and the messages are hidden for longer than a call may take. So several processes may
push one subscription at once, and the messages that a dead process had in flight are redelivered.
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

FIND_WAITING_SUBSCRIPTIONS = Statement(__file__, "find_waiting_subscriptions", one=int)

# Before a receive and before a call, the row of a subscription is read again if the last read is older than this time.
# A pause does not depend on these times, because each call locks the subscription when it begins.
BELIEVED_SECONDS = 1.0
BELIEVED_FOR_CALL_SECONDS = 0.05
WAIT_SECONDS = 1.0
# A push goes on receiving for this time after its last message, so that a new message is pushed within milliseconds.
# Then the push ends, and a later message waits for beat's next run.
IDLE_SECONDS = 10.0
# A message whose call did not reach the server may be received again after this; the circuit delays the next call.
RETURN_SECONDS = 1.0
# Time for calls under way when the process ends: a web process has 2 s to end.
CLOSE_SECONDS = 1.5
# The most bytes of an answer for each message of the call, in addition to the 64 KiB of any answer.
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
        # The group waits for the calls under way, and cancels them when the push is cancelled.
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
                # If long polls are turned off, the receive has not waited, so the push waits here.
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
        """Receives as many messages as free calls can take, and starts these calls; returns whether there were any."""
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
            # `makes=False`: the receive does not create a group or topic that was just deleted.
            deliveries = await receives.receive(subscriber.group, wanted, hold, makes=False)
            if deliveries:
                begun = await self._begin_calls(calls, deliveries, 1 if one_call else free)
                holding.pop_all()
                calls.create_task(hold.until(begun), name=f"answers of {subscriber.name}")
        return bool(deliveries)

    async def _begin_calls(
        self, calls: asyncio.TaskGroup, deliveries: Sequence[Delivery], most: int
    ) -> list[asyncio.Task[None]]:
        """Begins at most `most` calls with these deliveries, and returns the other deliveries to the group."""
        subscriber, tasks = self._subscriber, []
        begun = 0
        try:
            # A process that is ending begins no call.
            if not self._ending and await self._still_pushed(BELIEVED_FOR_CALL_SECONDS):
                parts = protocol.calls(deliveries, subscriber.max_batch)
                for call in islice(parts, most):
                    tasks.append(calls.create_task(self._deliver(call), name=f"push {subscriber.name}"))
                    begun += len(call)
                self._calls.update(tasks)
        finally:
            # Deliveries are left over when the push ends, when the subscription may not be pushed any more or cannot be
            # read, or when large messages need more calls than are free.
            rest = [delivery.receipt_handle for delivery in deliveries[begun:]]
            if rest:
                await returns.give_back(subscriber.group, rest, 0)
        return tasks

    async def _deliver(self, call: Sequence[Pushed]) -> None:
        try:
            await self._call(call)
        except Refusal as refusal:
            # The messages are redelivered when their invisible time is over.
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
            # The call did not begin, so the server's health is not changed.
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
        """Records a call in the subscription's health. If the record fails, the messages are settled nevertheless,
        because the server has handled them.
        """
        try:
            # `_subscriber` is read here again: another call may have opened or closed the circuit meanwhile.
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
        """Starts to push each subscription that has messages to push and is not already pushed by this process.

        With `late_seconds` only subscriptions that no process has pushed for this time: the fallback leaves other
        subscriptions to beat.
        """
        parameters = {"late_seconds": late_seconds, "max_subscriptions": MAX_SUBSCRIPTIONS}
        found = await connections.read(FIND_WAITING_SUBSCRIPTIONS, parameters)
        waiting = [id_ for id_ in found if id_ not in self._pushes]
        for subscriber in await subscribers.find(waiting) if waiting else ():
            # A worker's task may still run while its process ends.
            if subscriber.id not in self._pushes and not runtime.current().is_closing:
                self._begin(subscriber)

    def _begin(self, subscriber: Subscriber) -> None:
        if self._caller is None:
            self._caller = Caller(settings.WEBHOOK_ALLOWED_NETWORKS)
        # The listener receives wake-ups; in a web process it runs already.
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
        """Ends the pushes. Running calls have CLOSE_SECONDS; messages that are still unsettled then are redelivered."""
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
    """Starts the pushes of this process: see `Pusher.run`."""
    await runtime.part(Pusher).run(late_seconds)
