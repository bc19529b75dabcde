"""Validation of a transaction before its group and its topics are made at their first use."""

import uuid
from collections.abc import Sequence

from access.key_limits import Allowance
from scheduling import delays
from store import messages
from store.errors import BatchIllegal, MessageIllegal, TransactionSpansCells
from store.messages import Message, accept, first_uses
from store.messages.accept import Accepted
from store.messages.ids import derived_id
from store.naming import topics
from store.naming.topics import TopicFacts
from store.process import runtime
from transactions import endpoints, groups, undecided_limits
from transactions.operations import repeats
from transactions.reads import states

MAX_MESSAGES = 128


class BeginTransaction(Message, kw_only=True, forbid_unknown_fields=True):
    """A half message as its producer sends it: one message, or several that are decided together."""

    producer_group: str
    transaction_id: uuid.UUID | None = None
    check_immunity_seconds: float | None = None
    check_url: str | None = None
    messages: list[Message] | None = None

    @property
    def given(self) -> Sequence[Message]:
        """The messages of the transaction, at least one."""
        return self.messages or (self,)

    @property
    def named_topics(self) -> set[str]:
        """The names of the topics of its messages."""
        return {message.topic for message in self.given}


async def validate(request: BeginTransaction, allowance: Allowance | None) -> int | None:
    """Validates a transaction before its group and topics are created. Returns the id of the endpoint that it names.

    Raises the refusal that names the error.
    """
    group = await groups.find_for_producing(request.producer_group)
    given = messages_of(request)
    for message in given:
        topics.validate_sending(message.topic)
    _validate_together(request, given)
    await _require_one_cell(request)
    for message in given:
        await topics.require_possible(message.topic, message.queue_id)
        await delays.require_possible(message)
    await _require_first(request)
    # The first transaction of a group cannot be a repeat.
    if group is None and (refusal := await undecided_limits.of_key(allowance)) is not None:
        raise refusal
    if request.check_url is None:
        return None
    return await endpoints.of_url(group, request.producer_group, request.check_url)


async def accept_each(request: BeginTransaction, traceparent: str | None) -> Sequence[Accepted]:
    """Accepts the messages of a valid transaction, and creates missing topics. Raises the errors of `accept.accept`."""
    beside = await runtime.placement.beside(lambda: _require_one_cell(request))
    accepted = [
        await accept.accept(
            message,
            traceparent=traceparent,
            message_id=derived_id_of(request.transaction_id, number),
            beside=beside,
        )
        for number, message in enumerate(messages_of(request))
    ]
    # Another process may have created one of the topics in another cell meanwhile.
    _require_same_cell([one.topic for one in accepted])
    return accepted


async def _require_one_cell(request: BeginTransaction) -> str:
    """The name of the first topic: new topics must lie in the same cell.

    Raises TransactionSpansCells for topics in two cells, because one database decides a transaction.
    """
    names = list(dict.fromkeys(message.topic for message in messages_of(request)))
    found = [topic for name in names if (topic := await topics.find_for_sending(name)) is not None]
    _require_same_cell(found)
    return found[0].name if found else names[0]


def _require_same_cell(found: Sequence[TopicFacts]) -> None:
    spread = {topic.cell_id: topic.name for topic in found}
    if len(spread) > 1:
        of_cells = ", ".join(f"{name} in {runtime.of(cell).name}" for cell, name in spread.items())
        raise TransactionSpansCells(
            f"The topics of this transaction lie in several cells ({of_cells}): nothing was stored. A "
            "transaction lies in one database: use topics of one cell."
        )


async def _require_first(request: BeginTransaction) -> None:
    """Raises MessageIdReused if an id of this first use of a group or topic is stored already."""

    async def is_first_use() -> bool:
        if await groups.find_for_producing(request.producer_group) is None:
            return True
        return any([await topics.find_for_sending(name) is None for name in sorted(request.named_topics)])

    def forget() -> None:
        groups.forget(request.producer_group)
        for name in request.named_topics:
            topics.forget(name)

    async def require() -> None:
        id_ = request.transaction_id
        if id_ is not None and await states.find(id_) is not None:
            forget()
            if await is_first_use():
                raise repeats.another_transaction(id_)
        chosen = [message.message_id for message in messages_of(request) if message.message_id is not None]
        await accept.require_unused(chosen, is_first_use, forget)

    await first_uses.at_first_use(is_first_use, require)


def messages_of(request: BeginTransaction) -> Sequence[Message]:
    """The messages of a transaction. Raises MessageIllegal or BatchIllegal unless it has one message or a list."""
    if request.messages is None:
        return (request,)
    if any(getattr(request, name) not in (None, "") for name in Message.__struct_fields__):
        raise MessageIllegal(
            "A transaction has either the fields of one message or a list in messages: give one of the two."
        )
    if not request.messages:
        raise BatchIllegal("messages is empty: give at least one message.")
    if len(request.messages) > MAX_MESSAGES:
        raise BatchIllegal(f"messages has {len(request.messages)} messages, the limit is {MAX_MESSAGES}.")
    return request.messages


def derived_id_of(transaction_id: uuid.UUID | None, number: int) -> uuid.UUID | None:
    """The id for a message without an id, derived from its transaction's id: a repeated request gets the same id."""
    return None if transaction_id is None else derived_id(transaction_id, f"message {number}")


def _validate_together(request: BeginTransaction, given: Sequence[Message]) -> None:
    ids = [message.message_id or derived_id_of(request.transaction_id, number) for number, message in enumerate(given)]
    accept.validate_together(
        [messages.checked(message) for message in given], [id_ for id_ in ids if id_ is not None], "transaction"
    )
