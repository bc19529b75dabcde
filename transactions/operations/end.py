"""End: the decision about a transaction, by its producer, a check, an operator or a limit."""

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Annotated, Self

import msgspec

from access.callers import Caller
from scheduling import recalls
from scheduling.publish import Publication, publish
from store.commit.batch import Batch
from store.db import arrays
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.ids import of_int
from store.naming import topics
from store.notices import notifier
from store.process import runtime
from transactions import STATE_OF, GivenState, groups
from transactions.errors import ProducerGroupWrong
from transactions.operations import judging, packed
from transactions.operations.half_queues import HalfQueues
from transactions.operations.judging import INSERT_OPERATIONS, STATE_AFTER
from transactions.operations.located import UNKNOWN_VERSION, OfTransaction
from transactions.reads import history, states
from transactions.results import Ended, EndedMessage
from transactions.rows import DeletedHalf

END_HALVES = Statement(__file__, "end_halves", DeletedHalf)
INSERT_CHECK_ATTEMPTS = Statement(__file__, "insert_check_attempts")

NAMED_TOPIC = "That of one of its messages. Over several cells, its cell alone is asked for the transaction then."
UNKNOWN_GROUP = -1  # no group has this id, so an end with this id finds no half message


class EndTransaction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The call that ends a transaction. UNKNOWN: the producer cannot decide yet. RocketMQ's states are accepted."""

    producer_group: str
    state: GivenState
    from_transaction_check: bool = False
    commit_log_offset: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    remark: str | None = None
    topic: Annotated[str, msgspec.Meta(description=NAMED_TOPIC)] | None = None


class End(OfTransaction[Ended]):
    """Ends a transaction; the first decision wins. POST /v1/transactions/{id}/end, and `end` of a bulk.

    `decided_by` is producer, check, operator or limit. `group_id` is None for a decision of the broker itself. The same
    decision again gets the same answer. Raises, in this order, TransactionNotFound, ProducerGroupWrong,
    CommitLogOffsetWrong, TransactionDiscarded or TransactionEnded. Ends are written before sends, so that under load
    the backlog drains.
    """

    __slots__ = (
        "attempt",
        "caller",
        "decided_by",
        "decision",
        "discarded",
        "group_id",
        "group_name",
        "log_offset",
        "queue",
        "remark",
    )
    ORDER = 3
    URGENT = True

    def __init__(
        self,
        transaction_id: uuid.UUID,
        decision: str,
        decided_by: str,
        *,
        log_offset: int | None = None,
        remark: str | None = None,
        discarded: bool | None = False,
        attempt: dict[str, object] | None = None,
    ) -> None:
        super().__init__(transaction_id)
        self.decision = decision
        self.decided_by = decided_by
        self.log_offset = log_offset
        self.remark = None if remark is None else judging.kept(remark)
        # Which transactions this end may decide. True: only discarded ones; False: only pending ones; None: both.
        self.discarded = discarded
        # The check whose answer is this decision, as parameters of INSERT_CHECK_ATTEMPTS.
        self.attempt = attempt
        # Whether the end is a decision about a pending transaction, as almost all ends are.
        self.is_plain = decision in STATE_AFTER and discarded is False and attempt is None
        # The queue of the transaction's half message, set by `ready` if this process has begun the transaction.
        self.queue: tuple[int, int] | None = None
        self.group_id: int | None = None
        self.group_name: str | None = None
        self.caller: Caller | None = None

    @classmethod
    def of_producer(cls, transaction_id: uuid.UUID, given: EndTransaction, caller: Caller | None = None) -> Self:
        """The end that a producer's request asks for. Without a caller the broker itself decides."""
        decided_by = "check" if given.from_transaction_check else "producer"
        decision, log_offset = STATE_OF[given.state], given.commit_log_offset
        end = cls(transaction_id, decision, decided_by, log_offset=log_offset, remark=given.remark)
        end.group_name, end.caller = given.producer_group, caller
        end.topic = given.topic
        return end

    def ready(self) -> bool:
        """Whether this process knows the group and that the caller may end its transactions."""
        self.queue = runtime.control(HalfQueues).take(self.key)
        if not runtime.placement.choose(self):
            return False
        if self.group_name is None:
            return self.is_plain
        caller, group = self.caller, groups.known(self.group_name)
        if group is None:
            return False
        if caller is not None and not (caller.may_everywhere("produce") and groups.lets(group, caller)):
            return False
        self.group_id = group.id
        return self.is_plain

    def choose_cell(self) -> bool:
        """Chooses a cell by the named topic or by `OfTransaction.choose_cell`. False if the topic must be looked up."""
        if self.queue is not None:
            self.cell = runtime.control(HalfQueues).take_cell(self.key)
            # `take` returns the queue only once. If the transaction has left this cell, the repeated end must ask all
            # cells.
            self.left_cells, self.away, self.known_version = [], None, UNKNOWN_VERSION
        elif self.group_name is not None or self.decided_by == "operator":
            super().choose_cell()
        # An end by a check or a limit stays in the cell in which the transaction was found.
        return self.topic is None or self.is_only_in(topics.known(self.topic))

    def is_only_in(self, topic: topics.TopicFacts | None) -> bool:
        before, is_known = self.cell, super().is_only_in(topic)
        if self.cell != before:
            # This process knows the queue in another cell, so the end must not lock a queue of this number here.
            self.queue = None
        return is_known

    async def complete(self) -> None:
        if self.group_name is None:
            return
        if self.caller is not None:
            await self._authorise(self.caller, self.group_name)
        # The cell was chosen by the transaction's id, so another cell may have the transaction.
        if self.topic is not None and self.cell is not None:
            self.is_only_in(await topics.existing(self.topic))
        self.group_id = await _group_id(self.group_name)

    async def _authorise(self, caller: Caller, group_name: str) -> None:
        """Checks the right for the group first, so that a refusal does not show whether the transaction exists."""
        caller.require_any("produce")
        if not caller.may_manage_names(group_name):
            await groups.require_key(group_name, caller.name)
        # A key for all topics, as most keys are, needs no look-up.
        if not caller.may_everywhere("produce"):
            if self.topic is not None and not caller.may("produce", self.topic):
                raise states.not_found(self.transaction_id, judging.ON_THE_WAY)
            topic_names = await history.topics_of(self.transaction_id)
            if not all(caller.may("produce", topic) for topic in topic_names):
                raise states.not_found(self.transaction_id, judging.ON_THE_WAY)

    async def renew(self, refusal: Refusal) -> bool:
        """Chooses the next cell, as `OfTransaction.renew` does. Also True if the cached group was created again."""
        if await super().renew(refusal):
            return True
        if self.group_name is None or not isinstance(refusal, ProducerGroupWrong):
            return False
        groups.forget(self.group_name)
        before, self.group_id = self.group_id, await _group_id(self.group_name)
        return self.group_id != before

    @classmethod
    def before_locks(cls, operations: Sequence[Self]) -> Iterable[Call]:
        unknown = [one.key for one in operations if one.decision == "COMMIT" and one.queue is None]
        return [Call(packed.NAME_QUEUES, {"committed": arrays.uuids(unknown)})] if unknown else ()

    @classmethod
    def queues(cls, operations: Sequence[Self]) -> Iterable[tuple[int, int]]:
        return [one.queue for one in operations if one.queue is not None and one.decision == "COMMIT"]

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        return packed.calls_of_ends(operations, segment_id)

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        visible: Counter[int] = Counter()
        for turn, message_id, topic_id, queue_id, queue_offset in packed.ended(results):
            one = operations[turn - 1]
            if one.result is None:
                one.result = Ended(one.transaction_id, STATE_AFTER[one.decision], [])
            offset = None if queue_offset < 0 else queue_offset
            one.result.messages.append(EndedMessage(of_int(int.from_bytes(message_id)), queue_id, offset))
            if offset is not None:
                visible[topic_id] += 1
        notifier.notify(visible)

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> AsyncGenerator[None, None]:
        """Decides all transactions of the batch by one delete, then publishes their messages together."""
        halves = await _delete(batch, [one for one in operations if one.decision in STATE_AFTER])
        for one in operations:
            if (half := halves.get(one.transaction_id)) is not None:
                one.before = {"state": "DISCARDED" if half.was_discarded else "PREPARED"}
            if one.attempt is not None:
                batch.insert(INSERT_CHECK_ATTEMPTS, one.attempt)
        await judging.answer(batch, [one for one in operations if one.transaction_id not in halves])
        yield
        ended = {one: halves[one.transaction_id] for one in operations if one.transaction_id in halves}
        published: dict[Self, list[Publication]] = {}
        for one, half in ended.items():
            published[one] = judging.publications(half) if one.decision == "COMMIT" else []
            for publication in published[one]:
                await publish(batch, publication)
        yield
        for one, half in ended.items():
            offsets = [publication.queue_offset for publication in published[one]] or None
            batch.insert(INSERT_OPERATIONS, judging.of_end(one, half, offsets))
            one.result = judging.standing(STATE_AFTER[one.decision], half, offsets)
            for message, publication in zip(one.result.messages, published[one], strict=False):
                if publication.deliver_at is not None:
                    message.deliver_at = publication.deliver_at
                    message.recall_handle = recalls.handle_of(publication)


async def _group_id(name: str) -> int:
    group = await groups.find(name)
    return UNKNOWN_GROUP if group is None else group.id


async def _delete(batch: Batch, ends: Sequence[End]) -> dict[uuid.UUID, DeletedHalf]:
    if not ends:
        return {}
    rows = await batch.read(
        END_HALVES,
        {
            "transaction_id": [end.transaction_id for end in ends],
            "group_id": [end.group_id for end in ends],
            "log_offset": [end.log_offset for end in ends],
            "discarded": [end.discarded for end in ends],
        },
    )
    return {row.transaction_id: row for row in rows}
