"""The API's answers about transactions: the structs that are encoded and from which the schema is made."""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from store.messages import Time
from transactions import CheckAnswer, Decider, Decision, State
from transactions.rows import TransactionRow

# The events of a transaction. The trace of a message uses the same names.
TransactionEventName = Literal["prepared", "check", "end", "discard", "resume"]
Name = TypeVar("Name", bound=str)


class TransactionPart(msgspec.Struct):
    """A message of a transaction. Its queue offset is null until it is visible."""

    message_id: uuid.UUID
    topic: str
    queue_id: int
    queue_offset: int | None


class EventOf(msgspec.Struct, Generic[Name]):
    """An event by its name, with the fields of all events of transactions, which are listed only here."""

    event: Name
    at: Time
    state: Decision | UnsetType = UNSET
    by: Decider | UnsetType = UNSET
    remark: str | UnsetType | None = UNSET
    endpoint: str | UnsetType | None = UNSET
    status: int | UnsetType | None = UNSET
    latency_ms: int | UnsetType | None = UNSET
    answer: CheckAnswer | UnsetType | None = UNSET
    counted: bool | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET


class TransactionEvent(EventOf[TransactionEventName]):
    """An event of a transaction.

    prepared has no other fields. end, discard and resume have `state` (the decision), `by` (producer, check, operator
    or limit) and `remark`. check has the other fields: `endpoint` is null if the check was handed to a poll, `answer`
    is null if no producer was reached, and `counted` is whether it counts for the limit of checks.
    """


class TransactionHistory(msgspec.Struct):
    """A transaction with all its events in the order of time."""

    transaction_id: uuid.UUID
    producer_group: str
    state: State
    check_times: int
    next_check_at: Time | None
    last_failure: str | None
    commit_log_offset: int
    messages: list[TransactionPart]
    history: list[TransactionEvent]


class TransactionSummary(msgspec.Struct):
    """A transaction of a list, without its history."""

    transaction_id: uuid.UUID
    producer_group: str
    state: State
    check_times: int
    next_check_at: Time | None
    last_failure: str | None
    stored_at: Time
    decided_at: Time | None
    decided_by: str | None
    commit_log_offset: int
    messages: list[TransactionPart]


class Begun(msgspec.Struct, gc=False):
    """A transaction whose half messages are stored. `duplicate`: it was begun before, and this is its current state.

    `cell` is the transaction's cell, if there are several; then its end should have the `topic` of one of its messages.
    """

    transaction_id: uuid.UUID
    message_id: uuid.UUID
    message_ids: list[uuid.UUID]
    commit_log_offset: int
    state: State
    next_check_at: Time | None
    duplicate: bool | UnsetType = UNSET
    cell: str | UnsetType = UNSET


class EndedMessage(msgspec.Struct, gc=False):
    """A message of an ended transaction. Its queue offset is null after a rollback or recall, and during its delay."""

    message_id: uuid.UUID
    queue_id: int
    queue_offset: int | None
    deliver_at: Time | UnsetType = UNSET
    recall_handle: str | UnsetType = UNSET
    recalled: bool | UnsetType = UNSET


class Ended(msgspec.Struct):
    """The state of a transaction after an end."""

    transaction_id: uuid.UUID
    state: State
    messages: list[EndedMessage]


class Awaited(msgspec.Struct):
    """A pending transaction whose next check got a new time."""

    transaction_id: uuid.UUID
    state: Literal["PREPARED"]
    check_times: int
    next_check_at: Time


def awaited(transaction_id: uuid.UUID, check_times: int, next_check_at: datetime) -> Awaited:
    """The answer to a check or a resume that an operator requested."""
    return Awaited(transaction_id, "PREPARED", check_times, next_check_at)


def parts(transaction: TransactionRow, topics: Mapping[int, str]) -> list[TransactionPart]:
    """The messages of a transaction, by the names of their topics."""
    offsets = transaction.queue_offsets or [None] * len(transaction.message_ids)
    rows = zip(transaction.message_ids, transaction.topic_ids, transaction.queue_ids, offsets, strict=True)
    return [
        TransactionPart(message_id, topics[topic_id], queue_id, offset)
        for message_id, topic_id, queue_id, offset in rows
    ]


def next_check_at(transaction: TransactionRow) -> datetime | None:
    """The time of a transaction's next check; None unless pending: for a discarded one the row's time means nothing."""
    return transaction.next_check_at if transaction.state == "PREPARED" else None
