"""Begin: stores the messages of a transaction as half messages, which no consumer sees before its commit."""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Self

import msgspec

from access.callers import Caller
from scheduling import delays
from store.commit.batch import Batch
from store.commit.operation import Pipelined
from store.commit.pipelined import MAX_BATCH_BYTES
from store.db.arrays import literal
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import DelayIllegal, GroupNotExist, MessageIdReused, RateLimited, Refusal, TopicMoved
from store.messages import Record, accept, ids, is_large
from store.messages.accept import Accepted
from store.messages.ids import new_id
from store.messages.properties import tags_code_of
from store.naming import topics
from store.process import runtime
from transactions import groups, schedule, undecided_limits
from transactions.operations import packed, repeats, validation
from transactions.operations.half_queues import HalfQueues
from transactions.operations.repeats import Repeat
from transactions.operations.validation import BeginTransaction
from transactions.results import Begun

HOLD_GROUPS = Statement(__file__, "hold_groups", one=int)
INSERT_HALVES = Statement(__file__, "insert_halves")


class Begin(Pipelined[Begun]):
    """Begins a transaction: stores its messages as half messages, within the limits of its group and key.

    POST /v1/transactions, and `half` of a bulk. For a transaction that was begun before, the answer is its state, with
    `duplicate`. The field `check_immunity_seconds` has precedence over RocketMQ's property. A new group belongs to the
    caller's key, unless the key may manage. A request that breaks a rule is refused; then nothing is stored, and no
    group or topic is created. Without a caller the broker itself begins the transaction.
    """

    __slots__ = (
        "accepted",
        "api_key_id",
        "caller",
        "endpoint_id",
        "given",
        "group_id",
        "immunity_seconds",
        "limit",
        "may_repeat",
        "message",
        "request_bytes",
        "traceparent",
        "transaction_id",
    )
    ORDER = 1

    def __init__(
        self,
        given: BeginTransaction,
        traceparent: str | None = None,
        caller: Caller | None = None,
        request_bytes: int = 0,
    ) -> None:
        super().__init__()
        self.given = given
        self.traceparent = traceparent
        self.caller = caller
        self.request_bytes = request_bytes
        # Whether the client chose the transaction's id.
        self.may_repeat = given.transaction_id is not None
        self.transaction_id = given.transaction_id or new_id()
        # `complete` or `ready` sets the following fields.
        self.accepted: Sequence[Accepted]
        # The first message of the transaction. If `ready` returns True, it is the only message.
        self.message: Accepted
        self.group_id = 0
        self.endpoint_id: int | None = None
        self.immunity_seconds = 0.0
        self.api_key_id: int | None = None
        # The refusal by a limit, unless the transaction was begun before.
        self.limit: RateLimited | None = None

    def ready(self) -> bool:
        """Whether the begin has one small message, no delay, a known group and topic, and a key without limits."""
        given, caller = self.given, self.caller
        if caller is not None:
            for topic in given.named_topics if given.messages else (given.topic,):
                caller.require("produce", topic)
            if caller.allowance is not None:
                return False
        if given.messages is not None or given.check_url is not None or delays.of_message(given) is not None:
            return False
        group = groups.known_for_producing(given.producer_group)
        if group is None or not undecided_limits.is_known_below(group, given.topic) or is_large(given, MAX_BATCH_BYTES):
            return False
        if caller is not None and not groups.lets(group, caller):
            return False
        self._take_immunity()
        accepted = accept.accept_known(given, self.traceparent, validation.derived_id_of(given.transaction_id, 0))
        if accepted is None:
            return False
        self.group_id = group.id
        self._prepare((accepted,))
        return self.is_plain

    async def complete(self) -> None:
        caller, given = self.caller, self.given
        if caller is not None:
            if not caller.may_manage_names(given.producer_group):
                await groups.require_key(given.producer_group, caller.name)
            caller.spend(len(given.given), self.request_bytes)
        await self._look_up()

    async def _look_up(self) -> None:
        given = self.given
        self._take_immunity()
        allowance = None if self.caller is None else self.caller.allowance
        owner = None
        if self.caller is not None and not self.caller.may_manage_names(given.producer_group):
            owner = self.caller.name
        self.endpoint_id = await validation.validate(given, allowance)
        group = await groups.for_producing(given.producer_group, owner)
        self.group_id = group.id
        accepted = await validation.accept_each(given, self.traceparent)
        self.api_key_id = undecided_limits.counted_key(allowance)
        with runtime.in_cell(accepted[0].topic.cell_id):
            self.limit = await undecided_limits.of_group(group) or await undecided_limits.of_key(allowance)
        if self.limit is not None and not any(one.may_repeat for one in accepted):
            raise self.limit
        self._prepare(accepted)

    async def renew(self, refusal: Refusal) -> bool:
        """Looks up group and topics again, which may be deleted, new or moved. Returns whether they have changed."""
        if not isinstance(refusal, GroupNotExist | MessageIdReused | TopicMoved):
            return False
        before = self._written_to
        groups.forget(self.given.producer_group)
        for name in self.given.named_topics:
            topics.forget(name)
        await self._look_up()
        return self._written_to != before

    @property
    def _written_to(self) -> tuple[int | None, ...]:
        """The cell, the version of the map, and the ids of the group and of each message's topic."""
        return self.cell, self.version, self.group_id, *(one.topic.id for one in self.accepted)

    def written_topics(self) -> Mapping[int, str]:
        return {one.topic.id: one.topic.name for one in self.accepted}

    def _take_immunity(self) -> None:
        given = self.given
        taken = schedule.taken(given.given)
        if given.check_immunity_seconds is None:
            given.check_immunity_seconds = taken
        self.immunity_seconds = schedule.in_seconds(given.check_immunity_seconds)

    def _prepare(self, accepted: Sequence[Accepted]) -> None:
        self.accepted = accepted
        self.message = message = accepted[0]
        self.cell, self.version = message.topic.cell_id, message.topic.version
        if self.cell and not self.may_repeat:
            self.transaction_id = ids.in_cell(self.transaction_id, self.cell)
        self.key = key = self.transaction_id.bytes
        contents = [one.content for one in accepted] if len(accepted) > 1 else (message.content,)
        self.ids = (key, *[content.message_id.bytes for content in contents])
        self.size = size = accept.size_of(contents)
        # The usual case: one message without a delay that fits into a batch, and no limit for which to count.
        is_one = self.limit is None and len(accepted) == 1 and size < MAX_BATCH_BYTES
        self.is_plain = is_one and delays.of_message(message.message) is None

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        return packed.calls_of_begins(operations, segment_id)

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        stored_at, offsets = packed.begun(results)
        known = runtime.control(HalfQueues)
        immunities = {one.immunity_seconds for one in operations}
        next_checks = {seconds: stored_at + timedelta(seconds=seconds) for seconds in immunities}
        for one, log_offset in zip(operations, offsets, strict=True):
            if log_offset is not None:
                content, next_check_at = one.message.content, next_checks[one.immunity_seconds]
                named = [content.message_id]
                one.result = repeats.answer(one.transaction_id, named, (log_offset,), "PREPARED", next_check_at)
                known.keep(one.key, (content.topic_id, content.queue_id), one.message.topic.cell_id)

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> AsyncGenerator[None, None]:
        again = [Repeat(one.transaction_id, one.group_id, one.accepted, one.may_repeat) for one in operations]
        before = await repeats.answers(batch, again)
        group_ids = sorted({one.group_id for one in operations})
        held = set(await batch.read(HOLD_GROUPS, {"group_ids": group_ids}))
        appended: dict[Self, list[Record]] = {}
        for one in operations:
            outcome = before.get(one.transaction_id) or one.limit or _illegal_delay(one, batch)
            if outcome is None and one.group_id not in held:
                outcome = groups.absent(one.given.producer_group)
            if outcome is None:
                appended[one] = [each.record(one.transaction_id, one.group_id) for each in one.accepted]
                batch.append(appended[one])
            elif isinstance(outcome, Refusal):
                one.refusal = outcome
            else:
                one.result = outcome
        yield
        for one, records in appended.items():
            batch.insert(INSERT_HALVES, _half(one, records))
        yield
        for one, records in appended.items():
            next_check_at = batch.now + timedelta(seconds=one.immunity_seconds)
            named = [record.message_id for record in records]
            offsets = [record.log_offset for record in records]
            one.result = repeats.answer(one.transaction_id, named, offsets, "PREPARED", next_check_at)


def _illegal_delay(begin: Begin, batch: Batch) -> DelayIllegal | None:
    try:
        for message in begin.accepted:
            delays.validate(delays.of_message(message.message), batch.now)
    except DelayIllegal as refusal:
        return refusal
    return None


def _half(begin: Begin, records: Sequence[Record]) -> dict[str, object]:
    accepted = begin.accepted
    waits = [delays.of_message(one.message) for one in accepted]
    return {
        "transaction_id": begin.transaction_id,
        "producer_group_id": begin.group_id,
        "endpoint_id": begin.endpoint_id,
        "immunity_seconds": begin.immunity_seconds,
        "line": schedule.line(begin.immunity_seconds),
        "api_key_id": begin.api_key_id,
        "log_offsets": literal(record.log_offset for record in records),
        "message_ids": literal(record.message_id for record in records),
        "topic_ids": literal(record.topic_id for record in records),
        "queue_ids": literal(record.queue_id for record in records),
        "tags_codes": literal(tags_code_of(record.tags) for record in records),
        "delays": msgspec.json.encode(waits).decode() if any(waits) else None,
    }
