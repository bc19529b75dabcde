# Generated from aio/checking.py by client/synchronous.py: change that file, then run the script.
"""The work of a check poller: fetch due checks, answer them, and try again after a failure."""

import logging
import threading
from contextlib import closing

from mqbroker_client.core import errors
from mqbroker_client.core.calls import producer as calls
from mqbroker_client.core.checks import BatchCheck, Check, outcomes_of
from mqbroker_client.core.executor import CheckExecutor, Work, ended
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.retries import PASSING, Retry, round_pause_seconds
from mqbroker_client.core.states import Outcome
from mqbroker_client.core.threads import apart, pause

# The logger is named after the poller's module, which programs know.
log = logging.getLogger("mqbroker_client.core.polling")

# Pause between two requests for a group that does not exist yet.
GROUP_PAUSE_SECONDS = 1.0


class Checking:
    """Fetches due checks and answers them, for producers that the broker cannot call.

    Checks are answered one after another; with an `executor` several at once, while more are fetched.
    """

    def __init__(
        self,
        producer: Producer,
        check: Check,
        *,
        max_transactions: int = 16,
        wait_seconds: float = 20.0,
        executor: CheckExecutor | None = None,
    ) -> None:
        self.producer = producer
        self.check = check
        self.max_transactions = max_transactions
        self.wait_seconds = wait_seconds
        self.executor = executor
        self._handed: set[Work] = set()
        self._line = apart(producer.broker)
        self._stopping = threading.Event()
        self._answering = False

    def answer_due(self) -> int:
        """Fetch and answer the due checks once; returns the number of checks."""
        asked = self._answer_due(self._line.retry)
        ended(list(self._handed))
        return asked

    def _run(self) -> None:
        # Each request is sent only once: the pauses between repetitions are in this loop, so that `stop` can end them.
        once = Retry(tries=1, seconds=self._line.retry.seconds)
        failures = 0
        while not self._stopping.is_set():
            try:
                self._answer_due(once)
                failures = 0
            except errors.GroupNotExist:
                # The broker creates the group with its first half message or its first endpoint.
                log.info("%s is not there yet: its checks are fetched when it is", self.producer.group)
                pause(self._stopping, GROUP_PAUSE_SECONDS)
            except Exception as error:
                if self._stopping.is_set():
                    return
                # Any error is logged: if the thread ended here, later checks would stay unanswered.
                if isinstance(error, errors.BrokerError):
                    level = logging.WARNING if isinstance(error, PASSING) else logging.ERROR
                    log.log(level, "checks of %s were not fetched: %s", self.producer.group, error)
                else:
                    log.exception("checks of %s were not fetched", self.producer.group)
                failures += 1
                pause(self._stopping, round_pause_seconds(failures))

    def _answer_due(self, retry: Retry) -> int:
        fetch = calls.receive_checks(self.producer.group, self.max_transactions, self.wait_seconds)
        halves = self._line.do(fetch, retry=retry)
        if self.executor is not None:
            return self._hand_over(self.executor, halves)
        self._answering = True
        try:
            return self._answer_all(halves)
        finally:
            self._answering = False

    def _hand_over(self, executor: CheckExecutor, halves: list[HalfMessage]) -> int:
        # A check that takes several half messages can read the rows of all of them by one SELECT.
        parts = [halves] if isinstance(self.check, BatchCheck) else [[half] for half in halves]
        for part in parts:
            self._handed.add(executor.begin(self._answer_all, part))
        self._handed = {work for work in self._handed if not work.done()}
        return len(halves)

    def _answer_all(self, halves: list[HalfMessage]) -> int:
        with closing(outcomes_of(self.check, halves, self.producer.broker.hooks)) as outcomes:
            for asked in range(len(halves)):
                if self._stopping.is_set():
                    return asked
                self._answer(*next(outcomes))
        return len(halves)

    def _answer(self, half: HalfMessage, outcome: Outcome) -> None:
        try:
            self.producer.end(
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
