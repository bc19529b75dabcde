"""The operator's calls that decide about transactions; reads and configuration are in `mqbroker.api.control`."""

import uuid
from typing import Literal

import msgspec

from mqbroker.api import requests
from mqbroker.api.answers import Answer, answer
from mqbroker.api.requests import DataRequest
from store.commit.operation import Note
from store.errors import MessageIllegal
from store.messages.texts import is_blank
from transactions import discards
from transactions.checks import requested
from transactions.reads import history, states

ACTION_OF_STATE = {"COMMIT": "transaction.commit", "ROLLBACK": "transaction.rollback"}


class CheckNow(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request to check a transaction now; the path names the transaction."""


class Resume(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request to check a discarded transaction again, with the reason."""

    reason: str | None = None


class Resolve(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request to decide a pending or discarded transaction, with the reason."""

    state: Literal["COMMIT", "ROLLBACK"]
    reason: str


async def resume(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/discarded/{transaction_id}/resume."""
    reason = (await request.given(Resume, optional=True)).reason
    found = await _managed(request, transaction_id)
    note = request.signed(reason).note("discarded.resume", found)
    return answer(await discards.resume(found, reason, note))


async def resolve_discarded(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/discarded/{transaction_id}/resolve."""
    given = await _resolve_of(request)
    found = await _managed(request, transaction_id)
    return answer(await discards.resolve(found, given.state, given.reason, _note(request, given, found)))


async def resolve(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/transactions/{transaction_id}/resolve."""
    given = await _resolve_of(request)
    found = await _managed(request, transaction_id)
    return answer(await discards.resolve_any(found, given.state, given.reason, _note(request, given, found)))


async def _managed(request: DataRequest, transaction_id: str) -> uuid.UUID:
    """The transaction id in the path, if the key may manage the transaction.

    A key bound to a namespace may do so if all topics of the transaction are in the namespace. Raises NoPermission, or
    TransactionNotFound as for an unknown id.
    """
    request.caller.require_manage_names()
    found = requests.transaction_id(transaction_id)
    if not request.caller.may_manage and not request.caller.may_manage_names(*await history.topics_of(found)):
        raise states.not_found(found)
    return found


def _note(request: DataRequest, given: Resolve, transaction_id: uuid.UUID) -> Note:
    return request.signed(given.reason).note(ACTION_OF_STATE[given.state], transaction_id)


async def _resolve_of(request: DataRequest) -> Resolve:
    request.caller.require_manage_names()
    given = await request.given(Resolve)
    if is_blank(given.reason):
        raise MessageIllegal("reason is blank: say why the transaction is decided by hand.")
    return given


async def check_now(request: DataRequest, transaction_id: str) -> Answer:
    """POST /v1/transactions/{transaction_id}/check."""
    await request.given(CheckNow, optional=True)
    found = await _managed(request, transaction_id)
    return answer(await requested.make_due(found, request.signed().note("transaction.check", found)), 202)
