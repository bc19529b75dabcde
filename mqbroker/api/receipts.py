"""Receipts as HTTP has them: what settles deliveries, and the outcome for each."""

import msgspec
from msgspec import UNSET, UnsetType

from mqbroker import errors
from mqbroker.errors import Code
from store.errors import Refusal


class AckDeliveries(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Deliveries that a consumer is done with."""

    receipt_handles: list[str]


class NackDeliveries(AckDeliveries, kw_only=True, forbid_unknown_fields=True):
    """Deliveries that a consumer could not finish."""

    delay_seconds: float | None = None
    reason: str | None = None


class ExtendDeliveries(AckDeliveries, kw_only=True, forbid_unknown_fields=True):
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
    """One result per receipt handle, in order."""

    results: list[ReceiptResult]


def results_of(handles: list[str], outcomes: list[Refusal | None]) -> ReceiptResults:
    """The outcome of each receipt, in order."""
    return ReceiptResults([_result(*one) for one in zip(handles, outcomes, strict=True)])


def _result(handle: str, refusal: Refusal | None) -> ReceiptResult:
    if refusal is None:
        return ReceiptResult(handle, 200)
    problem = errors.problem_of(refusal)
    return ReceiptResult(handle, problem.status, problem.type, problem.title, problem.detail, problem.code)
