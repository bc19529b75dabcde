"""The answers of the data plane that no app declares: results of writes, and answers that a view combines."""

import uuid

import msgspec
from msgspec import UNSET, UnsetType

from delivery.receive.deliveries import Delivery, Entry
from mqbroker.api.receipts import ReceiptResult
from mqbroker.errors import Code
from store.messages import StoredMessage


class Received(msgspec.Struct):
    """Messages handed to a consumer. If the request acked receipts first: one result per receipt handle, in order."""

    messages: list[Delivery]
    acked: list[ReceiptResult] | UnsetType = UNSET


class Pulled(msgspec.Struct):
    """A part of a queue with the queue's bounds; `max_offset` is the offset that the next message will get."""

    messages: list[Entry]
    next_offset: int
    min_offset: int
    max_offset: int


class RedriveResult(msgspec.Struct):
    """The outcome for one dead letter: status 200 with its new topic, queue and offset, or a problem."""

    message_id: uuid.UUID
    status: int
    topic: str | UnsetType = UNSET
    code: Code | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class Redriven(msgspec.Struct):
    """The outcome of a redrive: one result per message, in order."""

    results: list[RedriveResult]


class AskedMessage(StoredMessage, kw_only=True):
    """A message about which its producer is asked, with the queue in which a commit would make it visible."""

    queue_id: int


class AskedTransaction(AskedMessage, kw_only=True):
    """A half message about which its producer is asked; `messages` when its transaction has several.

    `check_times` includes this check; `last_failure` says why the previous check decided nothing. With several cells, a
    poll names the `cell`, and the end should have the `topic`.
    """

    check_times: int
    last_failure: str | None
    cell: str | UnsetType = UNSET
    messages: list[AskedMessage] | UnsetType = UNSET


class AskedTransactions(msgspec.Struct):
    """The transactions whose check is due. Answer each with its end and `from_transaction_check: true`."""

    transactions: list[AskedTransaction]


class BulkResult(msgspec.Struct):
    """The result of one operation in a bulk: the status of a single call, with its answer or problem."""

    status: int


class BulkResults(msgspec.Struct):
    """The results of a bulk: one per operation, in order."""

    results: list[BulkResult]
