"""The producer's side: send, and transactions, whose messages are invisible until the commit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self, Unpack
from uuid import UUID

from mqbroker_client.connection import Broker, Document, Retry, path
from mqbroker_client.ids import uuid7
from mqbroker_client.messages import Message, MessageFields
from mqbroker_client.states import LocalTransactionState


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a message was stored. `queue_offset` is None while it is delayed."""

    message_id: UUID
    topic: str
    queue_id: int
    queue_offset: int | None
    commit_log_offset: int
    recall_handle: str | None
    duplicate: bool

    @classmethod
    def read(cls, document: Document) -> Self:
        return cls(
            UUID(document["message_id"]),
            document["topic"],
            document["queue_id"],
            document.get("queue_offset"),
            document["commit_log_offset"],
            document.get("recall_handle"),
            document.get("duplicate", False),
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """A committed message at its place in its queue; the offset is None while the message is delayed."""

    message_id: UUID
    queue_id: int
    queue_offset: int | None


@dataclass(frozen=True, slots=True)
class Ended:
    """What the transaction is after an end: COMMITTED, ROLLED_BACK, or still PREPARED."""

    transaction_id: UUID
    state: str
    messages: Sequence[Placed]

    @classmethod
    def read(cls, document: Document) -> Self:
        placed = [
            Placed(UUID(message["message_id"]), message["queue_id"], message.get("queue_offset"))
            for message in document.get("messages") or ()
        ]
        return cls(UUID(document["transaction_id"]), document["state"], placed)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A half that is stored and waits for one decision."""

    producer: "Producer"
    transaction_id: UUID
    messages: Sequence[Message]
    commit_log_offset: int
    next_check_at: datetime | None
    duplicate: bool
    #: PREPARED, unless it was begun before (`duplicate`) and decided since.
    state: str = "PREPARED"

    @property
    def message_id(self) -> UUID:
        return self.messages[0].message_id

    def commit(self) -> Ended:
        return self.producer.end(self.transaction_id, LocalTransactionState.COMMIT)

    def rollback(self) -> Ended:
        return self.producer.end(self.transaction_id, LocalTransactionState.ROLLBACK)

    def unknown(self, remark: str | None = None) -> Ended:
        """Tell the broker that nothing is known yet; it asks later."""
        return self.producer.end(self.transaction_id, LocalTransactionState.UNKNOWN, remark=remark)


@dataclass(frozen=True, slots=True)
class Producer:
    """One producer group's way to the broker. Safe to share between threads."""

    broker: Broker
    group: str

    def send(self, topic: str, body: bytes, **fields: Unpack[MessageFields]) -> Sent:
        return self.send_message(Message(topic, body, **fields))

    def send_message(self, message: Message) -> Sent:
        return Sent.read(self.broker.call("POST", path("messages"), message.document()))

    def send_batch(self, topic: str, messages: Sequence[Message]) -> list[Sent]:
        """All or nothing, in one queue, at consecutive offsets."""
        answer = self.broker.call(
            "POST",
            path("messages", "batch"),
            {"topic": topic, "messages": [message.document() for message in messages]},
        )
        return [Sent.read(result) for result in answer["results"]]

    def begin(
        self,
        topic: str,
        body: bytes,
        *,
        transaction_id: UUID | None = None,
        check_immunity_seconds: float | None = None,
        check_url: str | None = None,
        **fields: Unpack[MessageFields],
    ) -> Transaction:
        """Store a half. A delay counts from the commit."""
        return self.begin_messages(
            [Message(topic, body, **fields)],
            transaction_id=transaction_id,
            check_immunity_seconds=check_immunity_seconds,
            check_url=check_url,
        )

    def begin_messages(
        self,
        messages: Sequence[Message],
        *,
        transaction_id: UUID | None = None,
        check_immunity_seconds: float | None = None,
        check_url: str | None = None,
        retry: Retry | None = None,
    ) -> Transaction:
        """Store one half or several, of one topic or several, that are decided together.

        A message that was tried in another transaction has a new id in this one: see `Transaction.messages`.
        """
        transaction_id = transaction_id or uuid7()
        messages = [message.within(transaction_id) for message in messages]
        documents = [message.document() for message in messages]
        answer = self.broker.call(
            "POST",
            path("transactions"),
            {
                **(documents[0] if len(documents) == 1 else {"messages": documents}),
                "producer_group": self.group,
                "transaction_id": str(transaction_id),
                **_given(check_immunity_seconds=check_immunity_seconds, check_url=check_url),
            },
            retry=retry,
        )
        next_check_at = answer.get("next_check_at")
        return Transaction(
            self,
            transaction_id,
            messages,
            answer["commit_log_offset"],
            datetime.fromisoformat(next_check_at) if next_check_at else None,
            answer.get("duplicate", False),
            answer.get("state", "PREPARED"),
        )

    def end(
        self,
        transaction_id: UUID,
        state: LocalTransactionState,
        *,
        from_transaction_check: bool = False,
        commit_log_offset: int | None = None,
        remark: str | None = None,
    ) -> Ended:
        """Decide a transaction. The first decision wins: the same again is answered alike, another is refused."""
        body = {
            "producer_group": self.group,
            "state": state.value,
            "from_transaction_check": from_transaction_check,
            **_given(commit_log_offset=commit_log_offset, remark=remark),
        }
        return Ended.read(self.broker.call("POST", path("transactions", transaction_id, "end"), body))

    def transaction(self, transaction_id: UUID) -> Document:
        """Its state and history, as the broker tells them."""
        return self.broker.call("GET", path("transactions", transaction_id))

    def recall(self, recall_handle: str) -> Document:
        """Take back a delayed message before it is delivered; afterwards: `AlreadyDelivered`."""
        return self.broker.call("POST", path("messages", "recall"), {"recall_handle": recall_handle})


def _given(**fields: object) -> Document:
    return {name: value for name, value in fields.items() if value is not None}
