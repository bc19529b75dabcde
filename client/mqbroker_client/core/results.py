"""The broker's answers to producers and consumers, and the results that a producer makes from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Self
from uuid import UUID

from mqbroker_client.core.documents import Document
from mqbroker_client.core.errors import TransactionEnded
from mqbroker_client.core.halves import HalfMessage
from mqbroker_client.core.messages import Delivery, Entry, Message
from mqbroker_client.core.states import LocalTransactionState

SEND_OK = "SEND_OK"


@dataclass(frozen=True, slots=True)
class Sent:
    """A stored message. `queue_offset` is None while it is delayed. `send_status` is SEND_OK: the message is on disk.

    `recall_handle` is the argument for `Producer.recall`, None without a delay. `duplicate`: the message was stored
    before.
    """

    message_id: UUID
    topic: str
    queue_id: int
    queue_offset: int | None
    commit_log_offset: int
    recall_handle: str | None = field(repr=False)
    duplicate: bool
    send_status: str = SEND_OK

    @classmethod
    def read(cls, document: Document) -> Self:
        """Makes an object from the API's JSON."""
        return cls(
            UUID(document["message_id"]),
            document["topic"],
            document["queue_id"],
            document.get("queue_offset"),
            document["commit_log_offset"],
            document.get("recall_handle"),
            document.get("duplicate", False),
            document.get("send_status", SEND_OK),
        )


@dataclass(frozen=True, slots=True)
class Placed:
    """A committed message with its place in a queue; the offset is None while the message is delayed."""

    message_id: UUID
    queue_id: int
    queue_offset: int | None


@dataclass(frozen=True, slots=True)
class Ended:
    """The state of a transaction after an end: COMMITTED, ROLLED_BACK, or still PREPARED."""

    transaction_id: UUID
    state: str
    messages: Sequence[Placed]

    @classmethod
    def read(cls, document: Document) -> Self:
        """Makes an object from the API's JSON."""
        placed = [
            Placed(UUID(message["message_id"]), message["queue_id"], message.get("queue_offset"))
            for message in document.get("messages") or ()
        ]
        return cls(UUID(document["transaction_id"]), document["state"], placed)


@dataclass(frozen=True, slots=True)
class Begun:
    """A transaction whose half messages are stored. `next_check_at`: the time of the broker's first check."""

    transaction_id: UUID
    messages: Sequence[Message]
    commit_log_offset: int
    next_check_at: datetime | None
    duplicate: bool
    #: The state is PREPARED, unless an earlier request has begun the transaction (`duplicate`) and it was ended after
    #: that.
    state: str = "PREPARED"
    #: The transaction's cell, if the broker has several cells.
    cell: str | None = None

    @property
    def message_id(self) -> UUID:
        return self.messages[0].message_id

    @property
    def topic_of_end(self) -> str | None:
        """The topic to name in the transaction's end, so that a broker with several cells asks only one of them.

        None for an older broker, which would refuse the field.
        """
        return None if self.cell is None else self.messages[0].topic


@dataclass(frozen=True, slots=True)
class TransactionSent:
    """A half message was stored and its local transaction ran.

    If `ended` is False, the end was lost, and a check will ask for the outcome. Like RocketMQ's TransactionSendResult.
    `commit_log_offset` belongs to the half message; `queue_id` and `queue_offset` are the place of the committed
    message. Both are None if the transaction was not committed, the message is delayed, or the end was lost.
    """

    transaction_id: UUID
    message_id: UUID
    state: LocalTransactionState
    remark: str | None
    ended: bool
    topic: str
    commit_log_offset: int
    queue_id: int | None = None
    queue_offset: int | None = None
    send_status: str = SEND_OK

    @classmethod
    def of(cls, begun: Begun, state: LocalTransactionState, remark: str | None, ended: Ended | None) -> Self:
        """The result from the answers to a half message and to its end; `ended` is None if the end was lost."""
        [placed] = ended.messages if ended is not None and ended.state == "COMMITTED" else [None]
        return cls(
            begun.transaction_id,
            begun.message_id,
            state,
            remark,
            ended is not None,
            begun.messages[0].topic,
            begun.commit_log_offset,
            None if placed is None else placed.queue_id,
            None if placed is None else placed.queue_offset,
        )


def require_undecided(begun: Begun) -> None:
    """Raises an error for a decided transaction: its messages are already delivered or dropped, so its local
    transaction must not run.
    """
    if begun.state != "PREPARED":
        raise TransactionEnded(
            f"transaction {begun.transaction_id} is already {begun.state}, so its local transaction was not "
            "run: try again without this transaction_id, or with a new one",
            code="transaction_ended",
        )


def half_of(begun: Begun, producer_group: str) -> HalfMessage:
    """The half message to pass to the local transaction: the first message of the transaction."""
    given = {field.name: getattr(begun.messages[0], field.name) for field in fields(Message)}
    return HalfMessage(**given, transaction_id=begun.transaction_id, producer_group=producer_group, cell=begun.cell)


@dataclass(frozen=True, slots=True)
class Settled:
    """The result for one receipt handle: 200, or 410 when its invisible time was over."""

    receipt_handle: str = field(repr=False)
    status: int


class Received(list[Delivery]):
    """Received deliveries, and the results for receipts that the same call acked, in their order."""

    def __init__(self, deliveries: Iterable[Delivery], acked: Sequence[Settled]) -> None:
        super().__init__(deliveries)
        self.acked = acked


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a queue. `max_offset` is the offset that the next message will get."""

    messages: Sequence[Entry]
    next_offset: int
    min_offset: int
    max_offset: int

    @classmethod
    def read(cls, document: Document) -> Self:
        """Makes an object from the API's JSON."""
        return cls(
            [Entry.read(entry) for entry in document["messages"]],
            document["next_offset"],
            document["min_offset"],
            document["max_offset"],
        )
