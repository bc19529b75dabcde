"""Checks for producers that the broker cannot call: a thread that fetches what is due and answers it."""

import logging
import threading

from mqbroker_client import errors
from mqbroker_client.checks import Check
from mqbroker_client.connection import path
from mqbroker_client.messages import HalfMessage
from mqbroker_client.producers import Producer
from mqbroker_client.states import outcome_of

log = logging.getLogger(__name__)

LONGEST_PAUSE_SECONDS = 10.0


class CheckPoller:
    """A thread that fetches due checks and answers them, for producers that the broker cannot call."""

    def __init__(
        self, producer: Producer, check: Check, *, max_transactions: int = 16, wait_seconds: float = 20.0
    ) -> None:
        self.producer = producer
        self.check = check
        self.max_transactions = max_transactions
        self.wait_seconds = wait_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"checks of {producer.group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, timeout_seconds: float | None = None) -> None:
        """Stop after the request under way, which may be a long poll of `wait_seconds`."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def answer_due(self) -> int:
        """Fetch and answer what is due, once; how many were asked."""
        answer = self.producer.broker.call(
            "POST",
            path("producer-groups", self.producer.group, "checks", "receive"),
            {"max_transactions": self.max_transactions, "wait_seconds": self.wait_seconds},
            wait_seconds=self.wait_seconds,
        )
        for entry in answer["transactions"]:
            self._answer(HalfMessage.read(entry, self.producer.group))
        return len(answer["transactions"])

    def _answer(self, half: HalfMessage) -> None:
        outcome = outcome_of(lambda: self.check(half))
        try:
            self.producer.end(half.transaction_id, outcome.state, from_transaction_check=True, remark=outcome.remark)
        except errors.Conflict as error:
            log.info("transaction %s was decided before the check was answered: %s", half.transaction_id, error)
        except errors.BrokerError as error:
            log.warning("transaction %s: the answer was not told, it is asked again: %s", half.transaction_id, error)

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self.answer_due()
                failures = 0
            except Exception:
                # Whatever it was, a thread that ends here would leave every later check unanswered.
                log.exception("checks of %s were not fetched", self.producer.group)
                failures += 1
                self._stopping.wait(min(0.5 * 2 ** min(failures, 10), LONGEST_PAUSE_SECONDS))
