"""The steps around the COMMIT of a local transaction: the row and the half message before it, the end after it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from mqbroker_client.barrier.decisions import Aside, Barrier, at_once
from mqbroker_client.barrier.kept import KeptMessages
from mqbroker_client.barrier.outage import Outage
from mqbroker_client.barrier.sessions import Connection
from mqbroker_client.core import tracing
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.limits import DEFAULTS, Limits, validate
from mqbroker_client.core.meanings import Meaning, meaning_of
from mqbroker_client.core.messages import Message
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.results import Begun
from mqbroker_client.core.retries import HALF_RETRY, Retry
from mqbroker_client.core.states import LocalTransactionState

log = logging.getLogger(__name__)

#: Decides what happens while the broker is away: the local transaction fails, or keeps its messages in its row.
OnUnavailable = Literal["fail", "keep"]
# If an end is lost, a check replaces it, so a request does not wait long for an end.
END_RETRY = Retry(tries=2, seconds=2.0)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A local transaction that is ready to commit. `kept`: its messages are in its row, not at the broker."""

    transaction_id: UUID
    messages: Sequence[Message]
    kept: bool
    #: The topic that its end names; see `Begun.topic_of_end`.
    topic: str | None = None


@dataclass(slots=True)
class CommitSteps:
    """Call `before_commit` in the local transaction, then `committed`, or `failed` when the COMMIT did not succeed."""

    producer: Producer
    barrier: Barrier
    on_unavailable: OnUnavailable = "fail"
    aside: Aside = at_once
    kept: KeptMessages = field(init=False)
    outage: Outage = field(default_factory=Outage, init=False)
    # The default limits, or larger sizes that the broker has accepted from this process.
    _limits: Limits = field(default=DEFAULTS, init=False)
    # Whether this process has kept messages in rows since it last sent kept messages.
    _has_kept: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.kept = KeptMessages(self.producer, self.barrier, self.outage)
        if self.on_unavailable not in ("fail", "keep"):
            raise ValueError(f'on_unavailable is "fail" or "keep", not {self.on_unavailable!r}')

    def before_commit(self, connection: Connection, messages: Sequence[Message]) -> Prepared:
        """Inserts the row and stores one transaction with all half messages, in at most 3 s.

        The row is inserted first, so that a check never comes before the row is locked. Raises an error if the local
        transaction must be rolled back, also if it would keep messages that the broker would never accept.
        """
        transaction_id = uuid7()
        messages = [message.within(transaction_id) for message in messages]
        asks = HALF_RETRY if self.on_unavailable == "fail" else self.outage.turn()
        if keeps := asks is None:
            messages = self._to_keep(messages)
        self.barrier.insert_commit(connection, transaction_id, messages if keeps else None, aside=self.aside)
        begun = None if asks is None else self._store(transaction_id, messages, asks)
        if asks is not None and (keeps := begun is None):
            messages = self._to_keep(messages)
            self.barrier.keep(connection, transaction_id, messages)
        self._has_kept |= keeps
        return Prepared(transaction_id, messages, keeps, None if begun is None else begun.topic_of_end)

    def committed(self, prepared: Prepared) -> None:
        """Sends COMMIT. Raises nothing: a check replaces a lost COMMIT."""
        if prepared.kept:
            return
        self._end(prepared, LocalTransactionState.COMMIT)
        if self._has_kept:
            self._has_kept = False
            self.kept.send_in_background()

    def failed(self, prepared: Prepared) -> None:
        """Called after a COMMIT that raised an error: sends the end if the barrier's row already shows the outcome."""
        if prepared.kept:
            return
        first, *_ = prepared.messages
        half = HalfMessage(
            first.topic, first.body, transaction_id=prepared.transaction_id, producer_group=self.producer.group
        )
        state = self.aside(lambda: self.barrier.check(half))
        if state is not LocalTransactionState.UNKNOWN:
            self._end(prepared, state)

    def _to_keep(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages in the form that a row stores.

        Raises the broker's error for messages that the broker would never accept. The messages include the caller's
        trace context, which the process that later sends them does not have.
        """
        validate(self.producer.group, messages, self._limits)
        if (context := tracing.current()) is None:
            return messages
        return [message if message.traceparent else replace(message, traceparent=context) for message in messages]

    def _store(self, transaction_id: UUID, messages: Sequence[Message], asks: Retry) -> Begun | None:
        """The stored transaction; None: the messages are kept. Raises errors after which messages are not kept."""
        try:
            begun = self.aside(
                lambda: self.producer.begin_messages(messages, transaction_id=transaction_id, retry=asks)
            )
        except BrokerError as error:
            meaning = meaning_of(error)
            if self.on_unavailable == "keep" and meaning is Meaning.AWAY:
                if self.outage.goes_on(asks):
                    log.warning("the broker is away, messages are kept in the database: %s", error)
                return None
            self.outage.is_over()
            if self.on_unavailable == "keep" and meaning is Meaning.UNKNOWN:
                log.error("transaction %s: its messages are kept in the database: %s", transaction_id, error)
                return None
            raise
        self.outage.is_over()
        self._limits = self._limits.widened(messages)
        return begun

    def _end(self, prepared: Prepared, state: LocalTransactionState) -> None:
        if self.outage.lasts:
            # The end is sent without a wait for the broker, because the half message was stored just before. A check
            # replaces a lost end.
            self.producer.end(prepared.transaction_id, state, topic=prepared.topic, wait=False)
            return
        try:
            self.aside(lambda: self.producer.end(prepared.transaction_id, state, topic=prepared.topic, retry=END_RETRY))
        except BrokerError as error:
            log.warning("transaction %s: %s was not sent, a check ends it: %s", prepared.transaction_id, state, error)
            if self.on_unavailable == "keep" and meaning_of(error) is Meaning.AWAY:
                self.outage.goes_on(END_RETRY)
