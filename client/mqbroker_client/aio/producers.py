"""The producer's side: send, and transactions, whose messages are invisible until the commit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, Unpack, overload
from uuid import UUID

from mqbroker_client.aio.connection import AsyncBroker
from mqbroker_client.aio.tasks import send_later
from mqbroker_client.core import batches
from mqbroker_client.core.batches import SentList
from mqbroker_client.core.calls import producer as calls
from mqbroker_client.core.calls.producer import EndFields
from mqbroker_client.core.documents import Document
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.messages import Message, MessageFields
from mqbroker_client.core.results import Begun, Ended, Placed, Sent
from mqbroker_client.core.retries import Retry
from mqbroker_client.core.states import LocalTransactionState

__all__ = ["AsyncProducer", "AsyncTransaction", "Ended", "Placed", "Sent"]


@dataclass(frozen=True, slots=True)
class AsyncTransaction(Begun):
    """A stored half message that waits for a decision."""

    producer: "AsyncProducer" = field(kw_only=True)

    @classmethod
    def of(cls, producer: "AsyncProducer", begun: Begun) -> Self:
        """The begun transaction of a producer, made of the broker's answer."""
        return cls(
            begun.transaction_id,
            begun.messages,
            begun.commit_log_offset,
            begun.next_check_at,
            begun.duplicate,
            begun.state,
            begun.cell,
            producer=producer,
        )

    async def commit(self) -> Ended:
        """Make its messages visible. Raises `TransactionEnded` if the transaction was rolled back before."""
        return await self.producer.end(self.transaction_id, LocalTransactionState.COMMIT, topic=self.topic_of_end)

    async def rollback(self) -> Ended:
        """Drop its messages, which no consumer sees. Raises `TransactionEnded` if it was committed before."""
        return await self.producer.end(self.transaction_id, LocalTransactionState.ROLLBACK, topic=self.topic_of_end)

    async def unknown(self, remark: str | None = None) -> Ended:
        """Answer that the outcome is not known yet; the broker checks again later."""
        return await self.producer.end(
            self.transaction_id, LocalTransactionState.UNKNOWN, remark=remark, topic=self.topic_of_end
        )


@dataclass(frozen=True, slots=True)
class AsyncProducer:
    """One producer group's way to the broker. Safe to share between tasks."""

    broker: AsyncBroker
    group: str

    @overload
    async def send(
        self,
        topic: str,
        body: bytes | str | None = ...,
        *,
        json: object = ...,
        wait: Literal[True] = True,
        **fields: Unpack[MessageFields],
    ) -> Sent: ...

    @overload
    async def send(
        self,
        topic: str,
        body: bytes | str | None = ...,
        *,
        json: object = ...,
        wait: Literal[False],
        **fields: Unpack[MessageFields],
    ) -> None: ...

    async def send(
        self,
        topic: str,
        body: bytes | str | None = None,
        *,
        json: object = None,
        wait: bool = True,
        **fields: Unpack[MessageFields],
    ) -> Sent | None:
        """Store a message that is visible at once, or after its delay. `fields` are fields of `Message`.

        The broker creates the topic with its first message, unless AUTO_CREATE_TOPICS is off. Raises a `BrokerError`:
        `Refused` or `MessageTooLarge` for a message that breaks a rule, `Unavailable` or `Unreachable` after the last
        try.

        Without `wait` it is RocketMQ's one-way send: the message waits in memory, with at most 9,999 others, and is
        sent in the background. The message is **lost** if it is refused or finds no room, if the program is killed
        while it waits, or if the broker is away for longer than the tries take: a lost message is logged, and counted
        in the broker's `lost`. `AsyncBroker.close`, and for threads the end of the program, give it three seconds.
        """
        message = Message.of(topic, body, json=json, **fields)
        if wait:
            return await self.send_message(message)
        send_later(self.broker, calls.send(message, self.broker.compression))
        return None

    async def send_message(self, message: Message) -> Sent:
        """Store a `Message` object. A second call with the same object stores nothing new."""
        return await self.broker.do(calls.send(message, self.broker.compression))

    async def send_batch(self, topic: str, messages: Sequence[Message]) -> SentList:
        """Store all messages or none, in one queue, at consecutive offsets.

        A list of more than 1,000 messages or 4 MiB is split into batches. Each batch is stored as a whole:
        `batches` of the result tells which messages were in each. Raises `BatchesUnfinished` when a later batch fails.
        """
        sent = SentList()
        for batch in batches.split(messages):
            try:
                sent.add(await self.broker.do(calls.send_batch(topic, batch, self.broker.compression)))
            except BrokerError as error:
                if not sent:
                    raise
                raise batches.BatchesUnfinished.after(sent, error, len(messages)) from error
        return sent

    async def begin(
        self,
        topic: str,
        body: bytes | str | None = None,
        *,
        json: object = None,
        transaction_id: UUID | None = None,
        check_immunity_seconds: float | None = None,
        check_url: str | None = None,
        **fields: Unpack[MessageFields],
    ) -> AsyncTransaction:
        """Store a half message: durable, and visible to no consumer before the commit, from which a delay counts.

        If there is no end, the broker asks for the outcome after `check_immunity_seconds` (at least, and by default, 6
        s): at the endpoint `check_url`, else at any endpoint of the group, or by a `AsyncCheckPoller`. The same
        `transaction_id` again, with the same messages, is the same transaction.
        """
        return await self.begin_messages(
            [Message.of(topic, body, json=json, **fields)],
            transaction_id=transaction_id,
            check_immunity_seconds=check_immunity_seconds,
            check_url=check_url,
        )

    async def begin_messages(
        self,
        messages: Sequence[Message],
        *,
        transaction_id: UUID | None = None,
        check_immunity_seconds: float | None = None,
        check_url: str | None = None,
        retry: Retry | None = None,
    ) -> AsyncTransaction:
        """Store up to 128 half messages, of one or several topics, as one transaction. Arguments and errors are those
        of `begin`.

        A message that was used in another transaction gets a new id in this one: see `AsyncTransaction.messages`.
        """
        transaction_id = transaction_id or uuid7()
        begin = calls.begin(
            self.group,
            [message.within(transaction_id) for message in messages],
            transaction_id,
            check_immunity_seconds=check_immunity_seconds,
            check_url=check_url,
            compression=self.broker.compression,
        )
        return AsyncTransaction.of(self, await self.broker.do(begin, retry=retry))

    @overload
    async def end(
        self,
        transaction_id: UUID,
        state: LocalTransactionState,
        *,
        retry: Retry | None = ...,
        wait: Literal[True] = True,
        **fields: Unpack[EndFields],
    ) -> Ended: ...

    @overload
    async def end(
        self, transaction_id: UUID, state: LocalTransactionState, *, wait: Literal[False], **fields: Unpack[EndFields]
    ) -> None: ...

    @overload
    async def end(
        self,
        transaction_id: UUID,
        state: LocalTransactionState,
        *,
        retry: Retry | None = ...,
        wait: bool = ...,
        **fields: Unpack[EndFields],
    ) -> Ended | None: ...

    async def end(
        self,
        transaction_id: UUID,
        state: LocalTransactionState,
        *,
        retry: Retry | None = None,
        wait: bool = True,
        **fields: Unpack[EndFields],
    ) -> Ended | None:
        """Decide a transaction. The first decision wins: repeating it has the same answer, and the opposite decision is
        refused.

        `from_transaction_check`: the end answers a check. With `commit_log_offset` the broker refuses the end if this
        is not the log offset of the half message. `topic`, the topic of one of the messages, tells a broker of several
        cells which cell has the transaction. An older broker refuses this field, so `AsyncTransaction` sends it only if
        the broker has named a cell.

        Without `wait` the end is sent in the background, and a failure is only logged: a check decides then.
        `AsyncBroker.close`, and for threads the end of the program, give it three seconds.
        """
        end = calls.end(self.group, transaction_id, state, **fields)
        if wait:
            return await self.broker.do(end, retry=retry)
        send_later(self.broker, end)
        return None

    async def transaction(self, transaction_id: UUID) -> Document:
        """The state and history of a transaction, in the form of the broker's answer."""
        return await self.broker.do(calls.transaction(transaction_id))

    async def recall(self, recall_handle: str) -> Document:
        """Take back a delayed message before it is delivered. Raises `AlreadyDelivered` afterwards."""
        return await self.broker.do(calls.recall(recall_handle))
