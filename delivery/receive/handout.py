"""Handout: hands each receive its messages and hides them, in a pipelined batch; a receive that the batch leaves out is
written stepwise.

The receives of one group and one topic in a batch are one *reading*: they share the locks and the queues' entries.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Self

from delivery.groups import locks_of
from delivery.receive import packed, stepwise
from delivery.receive.deliveries import HandedOut, Handout, Receiver
from delivery.receive.packed import HAND_OUT
from store.commit import writer
from store.commit.batch import Batch
from store.commit.operation import Pipelined
from store.db import arrays, pipeline
from store.db.pipeline import Call, Results
from store.db.statements import Statement
from store.errors import Refusal, TopicMoved
from store.messages import MessageRow
from store.naming import topics
from store.notices.listeners import Joined
from store.process.answer_budget import answers
from store.queues import Queue
from store.reading.progress import RECORD_MOVES
from store.segments import log

LOCK_READINGS = Statement(__file__, "lock_readings", one=str)

ONLY_FREE = b"\x01"


async def hand_out(receiver: Receiver, kind: type["Receiving"]) -> Handout:
    """Hands a receive its entries, hides them from the group, and reads their messages; none while the group is paused.

    `kind`: the operation, `Receiving`, or its subclass for groups whose keys take turns.

    Raises SystemBusy when too many operations or answers wait or the database is away. Raises OutcomeUnknown when the
    connection broke during the commit: messages may then be hidden until their invisible time is over.
    """
    # The size of a held or parked message is not known before the read, so an ordered group needs room for large
    # messages.
    await receiver.hold.room(may_be_small=not receiver.group.ordered)
    if receiver.group.paused:
        return Handout(receiver)
    handout = await writer.run(kind(receiver))
    await handout.read()
    return handout


class Reading(NamedTuple):
    """The receives of one group and one topic in a batch, with the queues that they read, in the order of the first
    receive.
    """

    receives: list["Receiving"]
    queues: list[Queue]

    @property
    def receiver(self) -> Receiver:
        return self.receives[0].receiver

    @property
    def wanted(self) -> int:
        """The number of messages that the receives ask for together."""
        return sum(receive.receiver.max_messages for receive in self.receives)


class Receiving(Pipelined[Handout]):
    """Hands out entries to a receive, by `receive.stepwise` or in a pipelined batch, in four steps:

    1. `lock_readings` locks the progress of the group in its queues, and locks the group against a pause.
    2. `hand_out` chooses the entries and inserts their receipts.
    3. `record_moves` moves the group's progress beyond each entry that was handed out.
    4. After the commit, `read_handed` reads the messages.

    While the process is short of bytes for answers, a pipelined batch leaves receives out, and they wait for room.
    """

    __slots__ = ("joined", "nonce", "receiver")
    LANE = "receives"
    # A receive that has joined a batch is written after the operations that store messages.
    ORDER = 4
    IS_READ = True

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.nonce = receiver.new_nonce()
        super().__init__(self.nonce.to_bytes(8))
        self.joined: Joined | None = None
        self.cell, self.version = receiver.cell, receiver.topic.version
        # A receive with a page from the reserve gets only small messages; the stepwise writer selects them by the sizes
        # in their heads.
        self.is_plain = receiver.is_plain and not receiver.hold.is_small

    async def renew(self, refusal: Refusal) -> bool:
        """Drops the cached topic when the topic has moved: the next receive looks it up. Returns False."""
        if isinstance(refusal, TopicMoved):
            topics.forget(self.receiver.topic.name)
        return False

    @classmethod
    def locks(cls, operations: Sequence[Self]) -> Iterator[int]:
        for one in operations:
            yield from locks_of(one.receiver.group, one.receiver.topic, one.receiver.queues)

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        handouts = await stepwise.hand_out(batch, [one.receiver for one in operations])
        for one, handout in zip(operations, handouts, strict=True):
            one.result = handout

    @classmethod
    def further_locks(cls, operations: Sequence[Self], segment_id: bytes, only_free: bytes) -> Iterable[Call]:
        locks = [
            (key, number, reading.receiver.group)
            for number, reading in enumerate(readings_of(operations), 1)
            for key in locks_of(reading.receiver.group, reading.receiver.topic, reading.queues)
        ]
        rows = [(key, number, group.id) for key, number, group in locks]
        columns = {
            **arrays.int4_columns(("key", "key_reading", "key_group_id"), rows, wide=("key",)),
            "key_fair_by": arrays.texts([group.fair_by for _, _, group in locks]),
            "key_limits_by": arrays.texts([group.limits and group.limits["by"] for _, _, group in locks]),
            # A joined receive waits for no lock, because the other operations of the batch would also have to wait.
            "only_free": ONLY_FREE if operations[0].joined else only_free,
        }
        return [Call(LOCK_READINGS, columns)]

    @classmethod
    def statements(cls, operations: Sequence[Self], segment_id: bytes) -> Iterable[Call]:
        if are_short(operations):
            return ()
        readings = readings_of(operations)
        columns = {"segment_id": segment_id, **columns_of(readings), **columns_of_queues(readings)}
        return [Call(HAND_OUT, columns), Call(RECORD_MOVES, columns)]

    @classmethod
    def behind_commit(cls, operations: Sequence[Self]) -> Iterable[Call]:
        # A receive that has joined a batch needs no read: `see` gives it the messages that the batch has stored.
        return () if operations[0].joined or are_short(operations) else [Call(log.READ_HANDED, {})]

    @classmethod
    def settle(cls, operations: Sequence[Self], results: Results) -> None:
        if (found := results.get(HAND_OUT)) is None:
            return
        settled, cut = (set(packed.numbers(found.get_value(0, column))) for column in (0, 1))
        read = {(row.segment_id, row.log_offset): row for row in pipeline.rows(results, log.READ_HANDED)}
        readings = readings_of(operations)
        receives = [receive for reading in readings for receive in reading.receives]
        queues = [queue for reading in readings for queue in reading.queues]
        entries = packed.entries([one.nonce for one in receives], queues, found.get_value(0, 2))
        handed = dict(zip(receives, entries, strict=True))
        for number, reading in enumerate(readings, 1):
            if number in settled:
                for receive in reading.receives:
                    receive.hand(handed[receive], read, is_cut=number in cut)

    def hand(self, entries: list[HandedOut], read: Mapping[tuple[int, int], MessageRow], *, is_cut: bool) -> None:
        """Sets the result of the receive to these entries."""
        is_all = not is_cut and len(entries) < self.receiver.max_messages
        self.result = Handout(self.receiver, entries, read, is_all, more=is_cut and not entries)
        self.result.count_bodies()

    # The batch that stores messages calls the following methods of a receive that may join it.

    @property
    def most(self) -> int:
        """The largest number of messages that the receive takes."""
        return self.receiver.max_messages

    @property
    def may_join(self) -> bool:
        """Whether the receive may be written now: bytes for its answer are free, and the consumer is connected."""
        return answers().is_calm and not self.receiver.is_gone

    @property
    def taken(self) -> int:
        """The number of messages that the receive was handed."""
        return 0 if self.result is None else len(self.result.entries)

    @property
    def is_all(self) -> bool:
        """Whether the receive was handed all entries, so that no further entry exists."""
        return self.result is not None and self.result.is_all

    def see(self, stored: Iterable[MessageRow]) -> None:
        """Called with the messages that the batch has stored, so that the receive need not read them."""
        if self.result is not None:
            self.result.messages = {(row.segment_id, row.log_offset): row for row in stored}


def are_short(operations: Sequence[Receiving]) -> bool:
    """Whether a receive of the batch waits for bytes for its answer; the batch then leaves all its receives out."""
    return not answers().is_calm and any(one.receiver.hold.is_short for one in operations)


def readings_of(operations: Sequence[Receiving]) -> list[Reading]:
    """The receives of a batch by group and topic."""
    found: dict[tuple[int, int], Reading] = {}
    for operation in operations:
        key = (operation.receiver.group.id, operation.receiver.topic.id)
        if key not in found:
            found[key] = Reading([], operation.receiver.queues)
        found[key].receives.append(operation)
    return list(found.values())


def columns_of(readings: Sequence[Reading]) -> dict[str, bytes]:
    """The columns of the readings and of their receives, by the names of the statements' parameters."""
    receives = [receive for reading in readings for receive in reading.receives]
    wanted = [reading.wanted for reading in readings]
    receivers = [reading.receiver for reading in readings]
    page_bytes = min(answers().page_bytes(key) for key in {receive.receiver.hold.key for receive in receives})
    return {
        "group_id": arrays.int4s([receiver.group.id for receiver in receivers]),
        "topic_id": arrays.int4s([receiver.topic.id for receiver in receivers]),
        "latest": arrays.int4s([receiver.group.start_at == "latest" for receiver in receivers]),
        "wanted_before": arrays.int8s([end - own for end, own in zip(accumulate(wanted), wanted, strict=True)]),
        "wanted": arrays.int8s(wanted),
        "wanted_end": arrays.int8s(list(accumulate(receive.receiver.max_messages for receive in receives))),
        "nonce": arrays.int8s([receive.nonce for receive in receives]),
        "invisible_seconds": arrays.float8s([receive.receiver.invisible_seconds for receive in receives]),
        "max_bytes": arrays.int8(max(page_bytes // len(readings), 1)),
        "max_read_bytes": arrays.int8(packed.MAX_READ_BYTES // len(readings)),
    }


def columns_of_queues(readings: Sequence[Reading]) -> dict[str, bytes]:
    """The columns of the queues that the readings read."""
    queues = [(number, *queue) for number, reading in enumerate(readings, 1) for queue in reading.queues]
    return arrays.int4_columns(("queue_reading", "queue_topic_id", "queue_id"), queues)
