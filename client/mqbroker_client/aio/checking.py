"""The work of a check poller: fetch due checks, answer them, and try again after a failure."""

import asyncio
import logging
from contextlib import aclosing

from mqbroker_client.aio.checks import AsyncCheck, outcomes_of
from mqbroker_client.aio.executor import AsyncCheckExecutor, Work, ended
from mqbroker_client.aio.producers import AsyncProducer
from mqbroker_client.aio.tasks import apart, pause
from mqbroker_client.core import errors
from mqbroker_client.core.calls import producer as calls
from mqbroker_client.core.checks import BatchCheck
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.retries import PASSING, Retry, round_pause_seconds
from mqbroker_client.core.states import Outcome

# The logger is named after the poller's module, which programs know.
log = logging.getLogger("mqbroker_client.aio.polling")

# Pause between two requests for a group that does not exist yet.
GROUP_PAUSE_SECONDS = 1.0


class AsyncChecking:
    """Fetches due checks and answers them, for producers that the broker cannot call.

    Checks are answered one after another; with an `executor` several at once, while more are fetched.
    """

    def __init__(
        self,
        producer: AsyncProducer,
        check: AsyncCheck,
        *,
        max_transactions: int = 16,
        wait_seconds: float = 20.0,
        executor: AsyncCheckExecutor | None = None,
    ) -> None:
        self.producer = producer
        self.check = check
        self.max_transactions = max_transactions
        self.wait_seconds = wait_seconds
        self.executor = executor
        self._handed: set[Work] = set()
        self._line = apart(producer.broker)
        self._stopping = asyncio.Event()
        self._answering = False

    async def answer_due(self) -> int:
        """Fetch and answer the due checks once; returns the number of checks."""
        asked = await self._answer_due(self._line.retry)
        await ended(list(self._handed))
        return asked

    async def _run(self) -> None:
        # Each request is sent only once: the pauses between repetitions are in this loop, so that `stop` can end them.
        once = Retry(tries=1, seconds=self._line.retry.seconds)
        failures = 0
        while not self._stopping.is_set():
            try:
                await self._answer_due(once)
                failures = 0
            except errors.GroupNotExist:
                # The broker creates the group with its first half message or its first endpoint.
                log.info("%s is not there yet: its checks are fetched when it is", self.producer.group)
                await pause(self._stopping, GROUP_PAUSE_SECONDS)
            except Exception as error:
                if self._stopping.is_set():
                    return
                # Any error is logged: if the task ended here, later checks would stay unanswered.
                if isinstance(error, errors.BrokerError):
                    level = logging.WARNING if isinstance(error, PASSING) else logging.ERROR
                    log.log(level, "checks of %s were not fetched: %s", self.producer.group, error)
                else:
                    log.exception("checks of %s were not fetched", self.producer.group)
                failures += 1
                await pause(self._stopping, round_pause_seconds(failures))

    async def _answer_due(self, retry: Retry) -> int:
        fetch = calls.receive_checks(self.producer.group, self.max_transactions, self.wait_seconds)
        halves = await self._line.do(fetch, retry=retry)
        if self.executor is not None:
            return await self._hand_over(self.executor, halves)
        self._answering = True
        try:
            return await self._answer_all(halves)
        finally:
            self._answering = False

    async def _hand_over(self, executor: AsyncCheckExecutor, halves: list[HalfMessage]) -> int:
        # A check that takes several half messages can read the rows of all of them by one SELECT.
        parts = [halves] if isinstance(self.check, BatchCheck) else [[half] for half in halves]
        for part in parts:
            self._handed.add(await executor.begin(self._answer_all, part))
        self._handed = {work for work in self._handed if not work.done()}
        return len(halves)

    async def _answer_all(self, halves: list[HalfMessage]) -> int:
        async with aclosing(outcomes_of(self.check, halves, self.producer.broker.hooks)) as outcomes:
            for asked in range(len(halves)):
                if self._stopping.is_set():
                    return asked
                await self._answer(*await anext(outcomes))
        return len(halves)

    async def _answer(self, half: HalfMessage, outcome: Outcome) -> None:
        try:
            await self.producer.end(
                half.transaction_id,
                outcome.state,
                from_transaction_check=True,
                remark=outcome.remark,
                topic=half.topic_of_end,
            )
        except errors.Conflict as error:
            log.info("transaction %s was decided before the check was answered: %s", half.transaction_id, error)
        except errors.BrokerError as error:
            log.warning(
                "transaction %s: the answer did not reach the broker, which checks again: %s",
                half.transaction_id,
                error,
            )
