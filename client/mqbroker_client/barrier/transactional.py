# Generated from aio/transactional.py by client/synchronous.py: change that file, then run the script.
"""RocketMQ's transactional producer: half message, local transaction, end, and a check when the end is lost."""

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
    """The local transaction of a program. With a barrier a program needs no other function."""

    def execute_local_transaction(self, half: HalfMessage, arg: object) -> LocalTransactionState | None:
        """Run the local transaction and return its outcome. None and any exception mean UNKNOWN."""


@runtime_checkable
class TransactionListener(LocalTransaction, Protocol):
    """The functions of a program without a barrier: the local transaction, and the answer to checks."""

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState | None:
        """Return the outcome, from the program's own records. Each instance of the group may be asked, also twice."""


@dataclass(frozen=True, slots=True)
class TransactionProducer:
    """Stores a half message, runs the local transaction, and sends its end, in RocketMQ's order. Tasks may share it.

    The broker sends the first check after `check_immunity_seconds` (default: the broker's setting), to `check_url` or
    to any endpoint of the group.
    """

    producer: Producer
    listener: LocalTransaction | TransactionListener
    check_immunity_seconds: float | None = None
    check_url: str | None = None
    half_retry: Retry = HALF_RETRY
    #: If given, the barrier answers checks instead of the listener. The local transaction calls
    #: `barrier.insert_commit`, or in a coroutine `EngineBarrier.insert_commit_async`.
    barrier: "Barrier | None" = None

    def __post_init__(self) -> None:
        if self.barrier is None and not isinstance(self.listener, TransactionListener):
            raise TypeError("a transaction producer needs a barrier, or a listener with check_local_transaction")

    def send_message_in_transaction(
        self, message: Message, arg: object = None, *, transaction_id: UUID | None = None
    ) -> TransactionSent:
        """Store the half message, run the local transaction, and send its end.

        Raises when the half message cannot be stored or the transaction was decided before; the local transaction then
        does not run. Later failures do not raise: a failed end is logged, and the broker's check asks
        `check_local_transaction`. Another call is a new transaction, unless the transaction's id is given.
        """
        begun = self._begin(message, transaction_id)
        require_undecided(begun)
        half = half_of(begun, self.producer.group)
        outcome = self._execute(half, arg)
        return TransactionSent.of(begun, outcome.state, outcome.remark, self._end(half, outcome))

    def check_local_transaction(self, half: HalfMessage) -> LocalTransactionState | None:
        """Answers a check. Give this method to `CheckPoller`, which takes an exception as UNKNOWN."""
        if self.barrier is not None:
            return blocking(self.barrier.check, half)
        assert isinstance(self.listener, TransactionListener)
        return self.listener.check_local_transaction(half)

    def _begin(self, message: Message, given: UUID | None) -> Begun:
        """Store the half message. If it may be stored although no answer came, roll it back, as RocketMQ does.

        The local transaction does not run then, and the rollback makes a check unnecessary. A transaction whose id the
        caller gave is not rolled back, because the caller may try it again.
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
        # The barrier's row decides, also if the reply to the COMMIT was lost or the function wrote no row.
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
