"""Checks for producers that the broker cannot call, answered by a task."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from mqbroker_client import errors
from mqbroker_client.aio.producers import AsyncProducer
from mqbroker_client.calls import producer as calls
from mqbroker_client.checks import BatchCheck
from mqbroker_client.messages import HalfMessage
from mqbroker_client.polling import GROUP_PAUSE_SECONDS
from mqbroker_client.retries import PASSING, Retry, round_pause_seconds
from mqbroker_client.states import LocalTransactionState, Outcome, in_thread, outcome_awaited

log = logging.getLogger(__name__)

#: A coroutine function, or a plain one, which runs in a thread because it may block.
AsyncCheck = Callable[[HalfMessage], Awaitable[LocalTransactionState | None] | LocalTransactionState | None]


class AsyncCheckPoller:
    """Fetches due checks and answers them; as `CheckPoller`."""

    def __init__(
        self, producer: AsyncProducer, check: AsyncCheck, *, max_transactions: int = 16, wait_seconds: float = 20.0
    ) -> None:
        self.producer = producer
        self.check = check
        self.max_transactions = max_transactions
        self.wait_seconds = wait_seconds
        self._stopping = False
        self._answering = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self.run())

    async def stop(self, *, timeout_seconds: float | None = None) -> None:
        """End the long poll, and stop when the check under way, if there is one, is answered.

        Checks that were fetched with it and not begun are asked again later. A check that takes longer than the time
        is cancelled: it is asked again, too.
        """
        self._stopping = True
        if self._task is None:
            return
        if self._answering:
            await asyncio.wait([self._task], timeout=timeout_seconds)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def answer_due(self) -> int:
        """Fetch and answer what is due, once; how many were asked."""
        return await self._answer_due(self.producer.broker.retry)

    async def run(self) -> None:
        """Fetch and answer until it is stopped or cancelled."""
        once = Retry(tries=1, seconds=self.producer.broker.retry.seconds)
        failures = 0
        while not self._stopping:
            try:
                await self._answer_due(once)
                failures = 0
            except errors.GroupNotExist:
                log.info("%s is not there yet: its checks are fetched when it is", self.producer.group)
                await asyncio.sleep(GROUP_PAUSE_SECONDS)
            except Exception as error:
                # Whatever it was, a task that ends here would leave every later check unanswered.
                if isinstance(error, errors.BrokerError):
                    level = logging.WARNING if isinstance(error, PASSING) else logging.ERROR
                    log.log(level, "checks of %s were not fetched: %s", self.producer.group, error)
                else:
                    log.exception("checks of %s were not fetched", self.producer.group)
                failures += 1
                await asyncio.sleep(round_pause_seconds(failures))

    async def _answer_due(self, retry: Retry) -> int:
        fetch = calls.receive_checks(self.producer.group, self.max_transactions, self.wait_seconds)
        halves = await self.producer.broker.do(fetch, retry=retry)
        self._answering = True
        try:
            batch = await asyncio.to_thread(self.check.answer, halves) if isinstance(self.check, BatchCheck) else None
            for asked, half in enumerate(halves):
                if self._stopping:
                    return asked
                await self._answer(half, await self._outcome(half) if batch is None else batch[asked])
        finally:
            self._answering = False
        return len(halves)

    async def _outcome(self, half: HalfMessage) -> Outcome:
        def check() -> object:
            return in_thread(partial(self.check, half))

        async def awaited() -> object:
            found = self.check(half)
            return await found if isinstance(found, Awaitable) else found

        return await outcome_awaited(awaited if asyncio.iscoroutinefunction(self.check) else check)

    async def _answer(self, half: HalfMessage, outcome: Outcome) -> None:
        try:
            await self.producer.end(
                half.transaction_id, outcome.state, from_transaction_check=True, remark=outcome.remark
            )
        except errors.Conflict as error:
            log.info("transaction %s was decided before the check was answered: %s", half.transaction_id, error)
        except errors.BrokerError as error:
            log.warning(
                "transaction %s: the answer did not reach the broker, which checks again: %s",
                half.transaction_id,
                error,
            )
