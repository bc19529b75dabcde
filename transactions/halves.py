"""Half messages: stored, durable, and seen by no consumer until their transaction is committed."""

import uuid
from collections.abc import Sequence
from datetime import timedelta

from access.limits import Allowance
from scheduling import delays
from store import messages
from store.commit import writer
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db import connections
from store.errors import BatchIllegal, GroupNotExist, MessageIllegal
from store.messages import Message, accept, is_large
from store.messages.accept import Accepted
from store.messages.ids import derived_id, new_id
from store.naming import topics
from transactions import endpoints, groups, limits, schedule
from transactions.answers import Begun
from transactions.rows import TransactionRow
from transactions.writing.begins import BEGINS, FIND_TRANSACTIONS, Begin, another_transaction
from transactions.writing.pipelined import Beginning, Kept

MAX_MESSAGES = 128


class BeginTransaction(Message, kw_only=True, forbid_unknown_fields=True):
    """A half message as its producer sends it: one message, or several that are decided together."""

    producer_group: str
    transaction_id: uuid.UUID | None = None
    check_immunity_seconds: float | None = None
    check_url: str | None = None
    messages: list[Message] | None = None


def topics_of(request: BeginTransaction) -> set[str]:
    """The names of the topics that a transaction wants to write to."""
    return {message.topic for message in request.messages} if request.messages else {request.topic}


def count(request: BeginTransaction) -> int:
    """The number of messages of a transaction, one at least."""
    return len(request.messages or (request,))


async def begin(
    request: BeginTransaction,
    traceparent: str | None = None,
    allowance: Allowance | None = None,
    *,
    owner: str | None = None,
    left_out: bool = False,
) -> Begun:
    """Stores a transaction's messages as half messages, within the allowance of the caller's key.

    Answers the fields of POST /v1/transactions; a transaction that was begun before is answered as it stands, with
    `duplicate`. The field `check_immunity_seconds` goes before RocketMQ's property. A group that is made for it belongs
    to the API key `owner`. Raises a Refusal when a rule is broken or the broker cannot write now; nothing is stored
    then, and no group or topic is made. With `left_out` a pipelined batch has left it out.
    """
    beginning = ready(request, traceparent) if allowance is None and not left_out else None
    if beginning is not None:
        kept = await writer.write(beginning)
        if kept is not None:
            return answer_to(beginning, kept)
        left_out = True
    _take_immunity(request)
    try:
        return await _begin(request, traceparent, allowance, owner, left_out=left_out)
    except GroupNotExist:
        # This process may remember a group that another one has just deleted.
        groups.forget(request.producer_group)
    return await _begin(request, traceparent, allowance, owner, left_out=left_out)


def ready(request: BeginTransaction, traceparent: str | None = None) -> Beginning | None:
    """A transaction for a pipelined batch, as almost all are: one message, not delayed, not large, its group and its
    topic known, begun with a key without limits. Else None.

    Raises a Refusal when a rule is broken.
    """
    if request.messages is not None or request.check_url is not None or delays.of_message(request) is not None:
        return None
    group = groups.known_for_producing(request.producer_group)
    if group is None or not limits.is_known_below(group) or is_large(request, MAX_BATCH_BYTES):
        return None
    _take_immunity(request)
    immunity_seconds = schedule.in_seconds(request.check_immunity_seconds)
    accepted = accept.accept_known(request, traceparent, _derived_id(request.transaction_id, 0))
    if accepted is None:
        return None
    may_repeat, transaction_id = request.transaction_id is not None, request.transaction_id or new_id()
    beginning = Beginning(accepted, transaction_id, group.id, None, immunity_seconds, None, may_repeat=may_repeat)
    return beginning if beginning.size < MAX_BATCH_BYTES else None


async def look_up_group(name: str) -> None:
    """Looks a producer group up, and how many transactions it has undecided, so that `ready` finds both."""
    group = await groups.find(name)
    if group is not None:
        await limits.of_group(group)


def answer_to(beginning: Beginning, kept: Kept) -> Begun:
    """The answer to a transaction that a pipelined batch has begun."""
    next_check_at = kept.stored_at + timedelta(seconds=beginning.immunity_seconds)
    message_id, log_offset = beginning.accepted.message_id, kept.log_offset
    return Begun(beginning.transaction_id, message_id, [message_id], log_offset, "PREPARED", next_check_at)


def _take_immunity(request: BeginTransaction) -> None:
    taken = schedule.taken(request.messages or (request,))
    if request.check_immunity_seconds is None:
        request.check_immunity_seconds = taken


async def _begin(
    request: BeginTransaction,
    traceparent: str | None,
    allowance: Allowance | None,
    owner: str | None,
    *,
    left_out: bool,
) -> Begun:
    immunity_seconds = schedule.in_seconds(request.check_immunity_seconds)
    endpoint_id = await _validate(request, allowance)
    transaction_id = request.transaction_id or new_id()
    group = await groups.for_producing(request.producer_group, owner)
    accepted = [
        await accept.accept(message, traceparent=traceparent, message_id=_derived_id(request.transaction_id, place))
        for place, message in enumerate(_messages_of(request))
    ]
    begun = Begin(
        transaction_id=transaction_id,
        group_id=group.id,
        group_name=group.name,
        endpoint_id=endpoint_id,
        immunity_seconds=immunity_seconds,
        api_key_id=limits.counted_key(allowance),
        accepted=accepted,
        may_repeat=request.transaction_id is not None,
        refusal=await limits.of_group(group) or await limits.of_key(allowance),
    )
    if begun.refusal is not None and not any(one.may_repeat for one in accepted):
        raise begun.refusal
    size = accept.size_of([one.content for one in accepted])
    if not left_out and begun.refusal is None and _is_plain(accepted) and size < MAX_BATCH_BYTES:
        of_group, may_repeat = (group.id, endpoint_id, immunity_seconds), begun.may_repeat
        beginning = Beginning(accepted[0], transaction_id, *of_group, begun.api_key_id, may_repeat=may_repeat)
        kept = await writer.write(beginning)
        if kept is not None:
            return answer_to(beginning, kept)
    answer: Begun = await writer.submit(BEGINS, begun, key=transaction_id, size=size)
    return answer


async def _validate(request: BeginTransaction, allowance: Allowance | None) -> int | None:
    """Validates a transaction before its group and its topics are made at their first use; returns the id of the
    endpoint that it names.

    Raises the refusal that names what is wrong.
    """
    group = await groups.find_for_producing(request.producer_group)
    given = _messages_of(request)
    for message in given:
        topics.validate_sending(message.topic)
    _validate_together(request, given)
    for message in given:
        await topics.require_possible(message.topic, message.queue_id)
        await delays.require_possible(message)
    await _require_first(request)
    # The first transaction of a group repeats none.
    if group is None and (refusal := await limits.of_key(allowance)) is not None:
        raise refusal
    if request.check_url is None:
        return None
    return await endpoints.of_url(group, request.producer_group, request.check_url)


async def _require_first(request: BeginTransaction) -> None:
    """Raises MessageIdReused for the first use of a group or a topic that would be refused once they were made."""

    async def is_first_use() -> bool:
        if await groups.find_for_producing(request.producer_group) is None:
            return True
        return any([await topics.find_for_sending(name) is None for name in sorted(topics_of(request))])

    if not await is_first_use():
        return
    id_ = request.transaction_id
    if id_ is not None and await find(id_) is not None and await is_first_use():
        raise another_transaction(id_)
    chosen = [message.message_id for message in _messages_of(request) if message.message_id is not None]
    await accept.require_unused(chosen, is_first_use)


def _is_plain(accepted: Sequence[Accepted]) -> bool:
    """One message without a delay, as almost all are: what a pipelined batch takes."""
    return len(accepted) == 1 and delays.of_message(accepted[0].message) is None


def _messages_of(request: BeginTransaction) -> Sequence[Message]:
    if request.messages is None:
        return (request,)
    if any(getattr(request, name) not in (None, "") for name in Message.__struct_fields__):
        raise MessageIllegal("A transaction has one message at the top or several in messages: give one of the two.")
    if not request.messages:
        raise BatchIllegal("messages is empty: give at least one message.")
    if len(request.messages) > MAX_MESSAGES:
        raise BatchIllegal(f"messages has {len(request.messages)} messages, the limit is {MAX_MESSAGES}.")
    return request.messages


def _derived_id(transaction_id: uuid.UUID | None, place: int) -> uuid.UUID | None:
    """The id of a message that brings none but whose transaction does: the same again when the request is repeated."""
    return None if transaction_id is None else derived_id(transaction_id, f"message {place}")


def _validate_together(request: BeginTransaction, given: Sequence[Message]) -> None:
    ids = [message.message_id or _derived_id(request.transaction_id, place) for place, message in enumerate(given)]
    accept.validate_together(
        [messages.checked(message) for message in given], [id_ for id_ in ids if id_ is not None], "transaction"
    )


async def find(transaction_id: uuid.UUID) -> TransactionRow | None:
    """What is known of a transaction now, or None."""
    rows = await connections.read(FIND_TRANSACTIONS, {"transaction_ids": [transaction_id]})
    return rows[0] if rows else None
