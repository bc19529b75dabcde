"""The answers of the data plane that no app declares: results of writes, and what a view puts together."""

import uuid

import msgspec
from msgspec import UNSET, UnsetType

from delivery.receive.deliveries import Delivery, Entry
from mqbroker.api.receipts import ReceiptResult
from mqbroker.errors import Code
from store.messages import StoredMessage


class Received(msgspec.Struct):
    """What a consumer was handed; one result per receipt handle that was to be acked before, in order."""

    messages: list[Delivery]
    acked: list[ReceiptResult] | UnsetType = UNSET


class Pulled(msgspec.Struct):
    """A stretch of a queue with the queue's bounds; `max_offset` is the next to be written."""

    messages: list[Entry]
    next_offset: int
    min_offset: int
    max_offset: int


class RedriveResult(msgspec.Struct):
    """The outcome for one dead letter: status 200 and where it went, or the problem that met it."""

    message_id: uuid.UUID
    status: int
    topic: str | UnsetType = UNSET
    code: Code | UnsetType = UNSET
    detail: str | UnsetType = UNSET


class Redriven(msgspec.Struct):
    """One result per message, in order."""

    results: list[RedriveResult]


class AskedMessage(StoredMessage, kw_only=True):
    """A message that its producer is asked about, and the queue that its commit makes it visible in."""

    queue_id: int


class AskedTransaction(AskedMessage, kw_only=True):
    """A half message that its producer is asked about; `messages` when its transaction has several.

    `check_times` counts this check, too; `last_failure` says why the one before decided nothing. A poll names the
    `cell` where there are several: the end should have the `topic` then.
    """

    check_times: int
    last_failure: str | None
    cell: str | UnsetType = UNSET
    messages: list[AskedMessage] | UnsetType = UNSET


class AskedTransactions(msgspec.Struct):
    """The transactions whose check is due. Answer each with its end and `from_transaction_check: true`."""

    transactions: list[AskedTransaction]


class BulkResult(msgspec.Struct):
    """That call's status, with that call's answer or problem."""

    status: int


class BulkResults(msgspec.Struct):
    """One result per operation, in order."""

    results: list[BulkResult]
