"""Checks for producers that the broker cannot call: a thread that fetches what is due and answers it."""

import logging
import threading
import time

from mqbroker_client import errors
from mqbroker_client.calls import producer as calls
from mqbroker_client.checks import Check, outcomes_of
from mqbroker_client.messages import HalfMessage
from mqbroker_client.producers import Producer
from mqbroker_client.retries import PASSING, Retry, round_pause_seconds
from mqbroker_client.states import Outcome

log = logging.getLogger(__name__)

# Between two looks for a group that is not there yet.
GROUP_PAUSE_SECONDS = 1.0
# Between two looks of `stop` at a thread that may just have begun its request.
STOP_PAUSE_SECONDS = 0.05


class CheckPoller:
    """A thread that fetches due checks and answers them, for producers that the broker cannot call."""

    def __init__(
        self, producer: Producer, check: Check, *, max_transactions: int = 16, wait_seconds: float = 20.0
    ) -> None:
        self.producer = producer
        self.check = check
        self.max_transactions = max_transactions
        self.wait_seconds = wait_seconds
        # Of its own, so that `stop` ends the long poll and nothing else.
        self._line = producer.broker.apart()
        self._fetching = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"checks of {producer.group}", daemon=True)

    def start(self) -> None:
        """Begin, in a thread of its own, once."""
        self._thread.start()

    def stop(self, *, timeout_seconds: float | None = None) -> None:
        """End the long poll, and stop when the check under way, if there is one, is answered.

        Checks that were fetched with it and not begun are asked again later.
        """
        self._stopping.set()
        give_up_at = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while self._thread.is_alive() and (give_up_at is None or time.monotonic() < give_up_at):
            if self._fetching:
                self._line.hang_up()
            self._thread.join(STOP_PAUSE_SECONDS)
        self._line.close()

    def close(self) -> None:
        """For a poller that was never started: closes its connection."""
        self._line.close()

    def answer_due(self) -> int:
        """Fetch and answer what is due, once; how many were asked."""
        return self._answer_due(self._line.retry)

    def _answer_due(self, retry: Retry) -> int:
        halves = self._fetch(retry)
        outcomes = outcomes_of(self.check, halves)
        for asked in range(len(halves)):
            if self._stopping.is_set():
                return asked
            self._answer(*next(outcomes))
        return len(halves)

    def _fetch(self, retry: Retry) -> list[HalfMessage]:
        self._fetching = True
        try:
            fetch = calls.receive_checks(self.producer.group, self.max_transactions, self.wait_seconds)
            return self._line.do(fetch, retry=retry)
        finally:
            self._fetching = False

    def _answer(self, half: HalfMessage, outcome: Outcome) -> None:
        try:
            self.producer.end(half.transaction_id, outcome.state, from_transaction_check=True, remark=outcome.remark)
        except errors.Conflict as error:
            log.info("transaction %s was decided before the check was answered: %s", half.transaction_id, error)
        except errors.BrokerError as error:
            log.warning(
                "transaction %s: the answer did not reach the broker, which checks again: %s",
                half.transaction_id,
                error,
            )

    def _run(self) -> None:
        # One try: the pauses between tries are here, where `stop` ends them.
        once = Retry(tries=1, seconds=self._line.retry.seconds)
        failures = 0
        while not self._stopping.is_set():
            try:
                self._answer_due(once)
                failures = 0
            except errors.GroupNotExist:
                # It is made with its first half, or its first endpoint.
                log.info("%s is not there yet: its checks are fetched when it is", self.producer.group)
                self._stopping.wait(GROUP_PAUSE_SECONDS)
            except Exception as error:
                if self._stopping.is_set():
                    return
                # Whatever it was, a thread that ends here would leave every later check unanswered.
                if isinstance(error, errors.BrokerError):
                    level = logging.WARNING if isinstance(error, PASSING) else logging.ERROR
                    log.log(level, "checks of %s were not fetched: %s", self.producer.group, error)
                else:
                    log.exception("checks of %s were not fetched", self.producer.group)
                failures += 1
                self._stopping.wait(round_pause_seconds(failures))
