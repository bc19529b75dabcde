"""Receipts in the HTTP API: the requests that settle deliveries, and the outcome for each."""

import msgspec
from msgspec import UNSET, UnsetType

from mqbroker import errors
from mqbroker.errors import Code
from scheduling.sending.results import Sent
from store.errors import Refusal
from store.messages import Message


class Deliveries(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The receipt handles of deliveries."""

    receipt_handles: list[str]


class AckDeliveries(Deliveries, kw_only=True, forbid_unknown_fields=True):
    """The request to ack deliveries, with messages to send.

    The acks and the messages are written together or not at all: one invalid receipt refuses the call.
    """

    messages: list[Message] | None = None


class NackDeliveries(Deliveries, kw_only=True, forbid_unknown_fields=True):
    """The request to nack deliveries."""

    delay_seconds: float | None = None
    reason: str | None = None


class ExtendDeliveries(Deliveries, kw_only=True, forbid_unknown_fields=True):
    """The request to extend deliveries."""

    invisible_seconds: float | None = None


class ReceiptResult(msgspec.Struct):
    """The outcome for one receipt: status 200, or a problem."""

    receipt_handle: str
    status: int
    type: str | UnsetType = UNSET
    title: str | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    code: Code | UnsetType = UNSET


class ReceiptResults(msgspec.Struct):
    """The results for receipt handles, in order; for an ack with messages also the results for the messages."""

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
