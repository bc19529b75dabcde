"""Receipts as HTTP has them: what settles deliveries, and the outcome for each."""

import msgspec
from msgspec import UNSET, UnsetType

from mqbroker import errors
from mqbroker.errors import Code
from scheduling.sending.results import Sent
from store.errors import Refusal
from store.messages import Message


class Deliveries(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Deliveries of a consumer."""

    receipt_handles: list[str]


class AckDeliveries(Deliveries, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer is done with, and the messages that it made of them.

    With messages both are committed, or neither is: a receipt that proves no delivery refuses the call.
    """

    messages: list[Message] | None = None


class NackDeliveries(Deliveries, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer could not finish."""

    delay_seconds: float | None = None
    reason: str | None = None


class ExtendDeliveries(Deliveries, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer needs more time for."""

    invisible_seconds: float | None = None


class ReceiptResult(msgspec.Struct):
    """The outcome for one receipt: status 200, or the problem that met it."""

    receipt_handle: str
    status: int
    type: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    code: Code | UnsetType = UNSET


class ReceiptResults(msgspec.Struct):
    """One result per receipt handle, in order; of an ack with messages also an answer to each message."""

    results: list[ReceiptResult]
    messages: list[Sent] | UnsetType = UNSET


def results_of(handles: list[str], outcomes: list[Refusal | None]) -> ReceiptResults:
    """The outcome of each receipt, in order."""
    return ReceiptResults([_result(*one) for one in zip(handles, outcomes, strict=True)])


def _result(handle: str, refusal: Refusal | None) -> ReceiptResult:
    if refusal is None:
        return ReceiptResult(handle, 200)
    problem = errors.problem_of(refusal)
    return ReceiptResult(handle, problem.status, problem.type, problem.title, problem.detail, problem.code)
