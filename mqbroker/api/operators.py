"""The operator's calls that decide something; what only shows or configures is in `mqbroker.api.control`."""

from typing import Literal

import msgspec
from django.http import HttpResponse

from mqbroker.api.asgi_handler import DataRequest, answer, decode
from mqbroker.api.producers import transaction_of
from store.errors import MessageIllegal
from transactions import discards
from transactions.checks import checker


class Resume(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a discarded transaction is checked again."""

    reason: str | None = None


class Resolve(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What becomes of a transaction, and why."""

    state: Literal["COMMIT", "ROLLBACK"]
    reason: str


async def resume(request: DataRequest, transaction_id: str) -> HttpResponse:
    """POST /v1/discarded/{transaction_id}/resume."""
    request.caller.require_manage()
    reason = decode(Resume, request.body or b"{}").reason
    return answer(await discards.resume(transaction_of(transaction_id), reason))


async def resolve_discarded(request: DataRequest, transaction_id: str) -> HttpResponse:
    """POST /v1/discarded/{transaction_id}/resolve."""
    given = _resolve_of(request)
    return answer(await discards.resolve(transaction_of(transaction_id), given.state, given.reason))


async def resolve(request: DataRequest, transaction_id: str) -> HttpResponse:
    """POST /v1/transactions/{transaction_id}/resolve."""
    given = _resolve_of(request)
    return answer(await discards.resolve_any(transaction_of(transaction_id), given.state, given.reason))


def _resolve_of(request: DataRequest) -> Resolve:
    request.caller.require_manage()
    given = decode(Resolve, request.body)
    if not given.reason.strip():
        raise MessageIllegal("reason is blank: say why the transaction is decided by hand.")
    return given


async def check_now(request: DataRequest, transaction_id: str) -> HttpResponse:
    """POST /v1/transactions/{transaction_id}/check."""
    request.caller.require_manage()
    return answer(await checker.ask_now(transaction_of(transaction_id)), 202)
