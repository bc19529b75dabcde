"""The producer's calls."""

import uuid
from functools import partial

import msgspec

from access.callers import Caller
from mqbroker.api import requests
from mqbroker.api.answers import Answer, answer, page
from mqbroker.api.requests import DataRequest
from scheduling import recalls
from store.naming import topic_names
from store.notices.presence import Present
from store.process import runtime
from store.reading import lookup
from transactions import groups
from transactions.checks import polling
from transactions.checks.polling import IsAllowed, ReceiveChecks
from transactions.reads import history, states


class RecallMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request to recall a delayed message."""

    recall_handle: str


async def recall(request: DataRequest) -> Answer:
    """POST /v1/messages/recall."""
    request.caller.require_any("produce")
    handle = (await request.given(RecallMessage)).recall_handle
    await require_topic_of(request.caller, recalls.message_of(handle))
    return answer(await recalls.recall(handle))


async def transaction(request: DataRequest, transaction_id: str) -> Answer:
    """GET /v1/transactions/{transaction_id}."""
    found = requests.transaction_id(transaction_id)
    if not request.caller.may_manage:
        await _require_topics(request.caller, found)
    return answer(await history.of(found))


async def receive_checks(request: DataRequest, group: str) -> Answer:
    """POST /v1/producer-groups/{group}/checks/receive."""
    caller = request.caller
    caller.require_any("produce")
    asked = await request.given(ReceiveChecks, optional=True)
    await require_group(caller, group)

    async def allowed() -> IsAllowed | None:
        now = await request.caller_now()
        now.require_any("produce")
        await require_group(now, group)
        return None if now.may_everywhere("produce") else partial(now.may, "produce")

    with runtime.control(Present).asks("producer", group, request.connection):
        received = await polling.receive(group, asked, request.hold, request.gone, allowed)
    found = page(request.hold, iter(received.documents.values()), name="transactions")
    found.give_back = received.given_back
    return found


async def require_topic_of(caller: Caller, message_id: uuid.UUID) -> None:
    """Raises MessageNotFound unless the message is stored and the key may produce to its topic.

    A key for all topics needs no look-up.
    """
    if not caller.may_everywhere("produce"):
        topic_id = (await lookup.copies(message_id))[0].topic_id
        if not caller.may("produce", (await topic_names.of_ids({topic_id}))[topic_id]):
            raise lookup.not_found(message_id)


async def require_group(caller: Caller, group: str) -> None:
    """Raises NoPermission unless the key may act for the producer group. A key with `manage` may act for all."""
    if not caller.may_manage_names(group):
        await groups.require_key(group, caller.name)


async def _require_topics(caller: Caller, transaction_id: uuid.UUID) -> None:
    """Raises TransactionNotFound, as for an unknown id, unless the key may produce to all topics of the transaction.

    A key for all topics, as most keys are, needs no look-up.
    """
    caller.require_any("produce", "manage")
    if not caller.may_everywhere("produce"):
        topic_names = await history.topics_of(transaction_id)
        if not all(caller.may("produce", topic) or caller.may_manage_names(topic) for topic in topic_names):
            raise states.not_found(transaction_id)
