"""The operator's calls that decide something; reads and configuration are in `mqbroker.api.control`."""

from typing import Literal

import msgspec

from mqbroker.api import requests
from mqbroker.api.answers import Answer, answer
from mqbroker.api.requests import DataRequest, decode
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


async def resume(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/discarded/{transaction_id}/resume."""
    request.caller.require_manage()
    reason = decode(Resume, request.body or b"{}").reason
    return answer(await discards.resume(requests.transaction_id(transaction_id), reason))


async def resolve_discarded(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/discarded/{transaction_id}/resolve."""
    given = _resolve_of(request)
    return answer(await discards.resolve(requests.transaction_id(transaction_id), given.state, given.reason))


async def resolve(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/transactions/{transaction_id}/resolve."""
    given = _resolve_of(request)
    return answer(await discards.resolve_any(requests.transaction_id(transaction_id), given.state, given.reason))


def _resolve_of(request: DataRequest) -> Resolve:
    request.caller.require_manage()
    given = decode(Resolve, request.body)
    if not given.reason.strip():
        raise MessageIllegal("reason is blank: say why the transaction is decided by hand.")
    return given


async def check_now(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/transactions/{transaction_id}/check."""
    request.caller.require_manage()
    return answer(await checker.ask_now(requests.transaction_id(transaction_id)), 202)
