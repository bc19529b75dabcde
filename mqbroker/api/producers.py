"""The producer's calls."""

import uuid
from functools import partial

import msgspec

from mqbroker.access import Caller
from mqbroker.api import requests
from mqbroker.api.answers import Answer, answer, page
from mqbroker.api.requests import DataRequest, decode
from mqbroker.api.router import Prompt
from scheduling import recalls
from sending import batches, sends
from sending.answers import Sent
from sending.batches import SendBatch, SentBatch
from sending.pipelined import Sending
from store.messages import Message
from store.naming import topics
from store.reading import lookup
from transactions import ends, groups, halves
from transactions.answers import Begun
from transactions.checks import polling
from transactions.checks.polling import IsAllowed, ReceiveChecks
from transactions.ends import EndTransaction
from transactions.halves import BeginTransaction
from transactions.reads import history
from transactions.writing.pipelined import Beginning, Ending


class RecallMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A delayed message that is wanted back."""

    recall_handle: str


def status_of(result: Sent | Begun) -> int:
    """201 for what was stored now, 200 for what was stored before."""
    return 200 if result.duplicate is True else 201


def status_of_end(end: EndTransaction) -> int:
    """200 for a decision, 202 for an UNKNOWN."""
    return 202 if end.state == "UNKNOWN" else 200


async def send(request: DataRequest, *, left_out: Sending | None = None) -> Answer:
    """POST /v1/messages."""
    message = _message(request)
    request.caller.spend(1, len(request.body))
    result = await sends.send(message, request.traceparent, left_out=left_out)
    return answer(result, status_of(result))


def _message(request: DataRequest) -> Message:
    message = decode(Message, request.body)
    request.caller.require("produce", message.topic)
    return message


def _send_ready(request: DataRequest) -> Sending | None:
    message = _message(request)
    # Those with a key keep their order: when one is left out, the next ones wait for it by its task.
    return None if message.sharding_key is not None else sends.ready(message, request.traceparent)


def _sent(sending: Sending) -> Answer:
    assert sending.answer is not None
    return answer(sending.answer[0], 201)


SEND = Prompt(_send_ready, _sent)


async def send_batch(request: DataRequest, *, left_out: Sending | None = None) -> Answer:
    """POST /v1/messages/batch."""
    given = _batch(request)
    request.caller.spend(len(given.messages), len(request.body))
    results = await batches.send(given, request.traceparent, left_out=left_out)
    return answer(SentBatch(results), status_of(results[0]))


def _batch(request: DataRequest) -> SendBatch:
    given = decode(SendBatch, request.body)
    for topic in {given.topic, *[message.topic for message in given.messages]} - {""}:
        request.caller.require("produce", topic)
    return given


def _batch_ready(request: DataRequest) -> Sending | None:
    sending = batches.ready(_batch(request), request.traceparent)
    return None if sending is None or sending.ordered else sending


def _batch_sent(sending: Sending) -> Answer:
    assert sending.answer is not None
    return answer(SentBatch(sending.answer), 201)


SEND_BATCH = Prompt(_batch_ready, _batch_sent)


async def recall(request: DataRequest) -> Answer:
    """POST /v1/messages/recall."""
    request.caller.require_any("produce")
    handle = decode(RecallMessage, request.body).recall_handle
    await require_topic_of(request.caller, recalls.message_of(handle))
    return answer(await recalls.recall(handle))


async def begin(request: DataRequest, *, left_out: Beginning | None = None) -> Answer:
    """POST /v1/transactions."""
    begun = _beginning(request)
    result = await begin_for(
        request.caller, begun, request.traceparent, len(request.body), left_out=left_out is not None
    )
    return answer(result, status_of(result))


async def begin_for(
    caller: Caller, begun: BeginTransaction, traceparent: str | None, size: int, *, left_out: bool
) -> Begun:
    """Begins a transaction, whose request has so many bytes, for a caller that may produce to its topics.

    Raises NoPermission for a producer group of other keys, RateLimited, or what `halves.begin` raises.
    """
    await require_group(caller, begun.producer_group)
    caller.spend(halves.count(begun), size)
    owner = None if caller.may_manage else caller.name
    return await halves.begin(begun, traceparent, caller.allowance, owner=owner, left_out=left_out)


def _beginning(request: DataRequest) -> BeginTransaction:
    begun = decode(BeginTransaction, request.body)
    for topic in halves.topics_of(begun):
        request.caller.require("produce", topic)
    return begun


def _begin_ready(request: DataRequest) -> Beginning | None:
    begun = _beginning(request)
    is_allowed = is_known_to_allow(request.caller, begun.producer_group)
    return halves.ready(begun, request.traceparent) if is_allowed else None


def _begun(beginning: Beginning) -> Answer:
    assert beginning.answer is not None
    return answer(halves.answer_to(beginning, beginning.answer), 201)


BEGIN = Prompt(_begin_ready, _begun)


async def end(request: DataRequest, transaction_id: str, *, left_out: Ending | None = None) -> Answer:
    """POST /v1/transactions/{transaction_id}/end."""
    given = decode(EndTransaction, request.body)
    found = requests.transaction_id(transaction_id)
    await require_end(request.caller, found, given)
    result = await ends.end(found, given, left_out=left_out is not None)
    return answer(result, status_of_end(given))


def _end_ready(request: DataRequest, transaction_id: str) -> Ending | None:
    given = decode(EndTransaction, request.body)
    found = requests.transaction_id(transaction_id)
    caller = request.caller
    is_allowed = caller.may_everywhere("produce") and is_known_to_allow(caller, given.producer_group)
    return ends.ready(found, given) if is_allowed else None


def _ended(ending: Ending) -> Answer:
    assert ending.answer is not None
    return answer(ends.answer_to(ending, ending.answer))


END = Prompt(_end_ready, _ended)


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
    asked = decode(ReceiveChecks, request.body or b"{}")
    await require_group(caller, group)

    async def allowed() -> IsAllowed | None:
        now = await request.caller_now()
        now.require_any("produce")
        await require_group(now, group)
        return None if now.may_everywhere("produce") else partial(now.may, "produce")

    received = await polling.receive(group, asked, request.hold, request.gone, allowed)
    found = page(request.hold, iter(received.documents.values()), name="transactions")
    found.give_back = received.given_back
    return found


async def require_topic_of(caller: Caller, message_id: uuid.UUID) -> None:
    """Raises MessageNotFound unless the message is stored and the key may produce to its topic.

    A key for all topics costs no look-up.
    """
    if not caller.may_everywhere("produce"):
        topic_id = (await lookup.copies(message_id))[0].topic_id
        if not caller.may("produce", (await topics.names({topic_id}))[topic_id]):
            raise lookup.not_found(message_id)


async def require_group(caller: Caller, group: str) -> None:
    """Raises NoPermission unless the key may act for the producer group. A key that manages may for each."""
    if not caller.may_manage:
        await groups.require_key(group, caller.name)


def is_known_to_allow(caller: Caller, group: str) -> bool:
    """Whether `require_group` would pass without reading the group; else it decides."""
    return caller.may_manage or groups.is_known_to_allow(group, caller.name)


async def require_end(caller: Caller, transaction_id: uuid.UUID, end: EndTransaction) -> None:
    """Raises NoPermission unless the key may act for the producer group, or what `_require_topics` raises.

    The group first: its refusal must not tell whether the transaction exists.
    """
    caller.require_any("produce")
    await require_group(caller, end.producer_group)
    await _require_topics(caller, transaction_id, ends.ON_THE_WAY)


async def _require_topics(caller: Caller, transaction_id: uuid.UUID, advice: str = "") -> None:
    """Raises TransactionNotFound, as for an id that no transaction has, unless the key may produce to all its topics.

    A key for all topics, as most are, costs no look-up.
    """
    caller.require_any("produce")
    if not caller.may_everywhere("produce"):
        topic_names = await history.topics_of(transaction_id)
        if not all(caller.may("produce", topic) for topic in topic_names):
            raise ends.not_found(transaction_id, advice)
