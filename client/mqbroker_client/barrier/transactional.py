# Generated from aio/transactional.py by client/synchronous.py: change that file, then run the script.
"""RocketMQ's transactional producer: half, local transaction, end, and a check for what gets lost between them."""

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from uuid import UUID

from mqbroker_client.core.errors import BrokerError, OutcomeUnknown, Unreachable
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.messages import Message
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.results import Begun, Ended, TransactionSent, half_of, require_undecided
from mqbroker_client.core.retries import HALF_RETRY, Retry
from mqbroker_client.core.states import LocalTransactionState, Outcome, outcome_of
from mqbroker_client.core.threads import blocking

if TYPE_CHECKING:
    from mqbroker_client.barrier import Barrier

__all__ = [
    "HALF_RETRY",
    "LocalTransaction",
    "TransactionListener",
    "TransactionProducer",
    "TransactionSent",
]

log = logging.getLogger(__name__)

IN_DOUBT = "the answer to the half message was lost, so its local transaction did not run"


class LocalTransaction(Protocol):
    """What a program does in its transactions. With a barrier that is all."""

    def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState | None:
        """Run the local transaction and say what came of it. None and any exception mean UNKNOWN."""


@runtime_checkable
class TransactionListener(LocalTransaction, Protocol):
    """What a program does for its transactions where no barrier answers checks."""

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState | None:
        """Say from the program's own records what came of it. Any instance of the group may be asked, and twice."""


@dataclass(frozen=True, slots=True)
class TransactionProducer:
    """Stores a half, runs the local transaction, and sends its end: RocketMQ's order. Safe to share between threads.

    The first check comes after `check_immunity_seconds`, by default after the broker's own time, at `check_url`, or at
    any endpoint of the group.
    """

    producer: Producer
    listener: LocalTransaction | TransactionListener
    check_immunity_seconds: float | None = None
    check_url: str | None = None
    half_retry: Retry = HALF_RETRY
    #: Says what came of a local transaction, in place of the listener: it writes `barrier.insert_commit`, or in a
    #: coroutine `EngineBarrier.insert_commit_async`.
    barrier: "Barrier | None" = None

    def __post_init__(self) -> None:
        if self.barrier is None and not isinstance(self.listener, TransactionListener):
            raise TypeError("a transaction producer needs a barrier, or a listener with check_local_transaction")

    def send_message_in_transaction(
        self, message: Message, arg: object = None, *, transaction_id: UUID | None = None
    ) -> TransactionSent:
        """Store the half, run the local transaction, tell the broker.

        When the half cannot be stored, or its transaction was decided before, this raises and the local transaction
        does not run. Afterwards nothing raises: an end that fails is logged, and the broker's check asks
        `check_local_transaction`. To try again, call it again: that is a new transaction unless its id is given.
        """
        begun = self._begin(message, transaction_id)
        require_undecided(begun)
        half = half_of(begun, self.producer.group)
        outcome = self._execute(half, arg)
        return TransactionSent.of(begun, outcome.state, outcome.remark, self._end(half, outcome))

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState | None:
        """The function to give to `CheckPoller`, or a plain one to `CheckListener`; an exception means UNKNOWN."""
        if self.barrier is not None:
            return blocking(self.barrier.check, half)
        assert isinstance(self.listener, TransactionListener)
        return self.listener.check_local_transaction(half)

    def _begin(self, message: Message, given: UUID | None) -> Begun:
        """The half. One that may be stored though its answer did not come is rolled back, as RocketMQ does.

        Its local transaction does not run, so no check needs to be asked. Not where the caller gave the id, and may try
        the same transaction again.
        """
        transaction_id = given or uuid7()
        try:
            return self.producer.begin_messages(
                [message],
                transaction_id=transaction_id,
                check_immunity_seconds=self.check_immunity_seconds,
                check_url=self.check_url,
                retry=self.half_retry,
            )
        except (Unreachable, OutcomeUnknown):
            if given is None:
                self.producer.end(transaction_id, LocalTransactionState.ROLLBACK, remark=IN_DOUBT, wait=False)
            raise

    def _execute(self, half: HalfMessage, arg: object) -> Outcome:
        def execute() -> object:
            return self.listener.execute_local_transaction(half, arg)

        outcome = outcome_of(execute)
        if self.barrier is None:
            return outcome
        # The row is the truth, also of a COMMIT whose reply was lost and of a function that wrote none.
        [found] = blocking(self.barrier.answer, [half])
        return Outcome(found.state, outcome.remark or found.remark)

    def _end(self, half: HalfMessage, outcome: Outcome) -> Ended | None:
        try:
            return self.producer.end(half.transaction_id, outcome.state, remark=outcome.remark, topic=half.topic_of_end)
        except BrokerError as error:
            log.warning(
                "transaction %s: %s was not sent, a check ends it: %s", half.transaction_id, outcome.state, error
            )
            return None
