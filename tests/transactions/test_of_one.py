"""The statements for a batch of one operation, and for many: both do the same to the same rows."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import pq

from store.db import arrays
from store.db.conninfo import SESSION
from store.db.pipeline import Call
from store.db.session import as_options
from store.db.statements import Statement
from store.messages import Message, Record
from store.messages.accept import Accepted
from store.naming.topics import TopicFacts
from store.segments import log
from tests.broker import databases
from transactions.operations import packed

KEY, OTHER_KEY, UNKNOWN = bytes(15) + b"\1", bytes(15) + b"\2", bytes(15) + b"\3"
MESSAGE = {KEY: bytes(15) + b"\4", OTHER_KEY: bytes(15) + b"\5", UNKNOWN: bytes(15) + b"\6"}
NO_GROUP = 4711
# The queue 0 has an entry in the open segment, the queue 1 has none.
QUEUE, EMPTY_QUEUE = 0, 1
LOCK_HALF = "SELECT 1 FROM half_message FOR UPDATE"
LOCK_GROUP = "SELECT 1 FROM producer_group FOR UPDATE"
# What each form makes differs in nothing but the moment.
ROWS = (
    "SELECT to_jsonb(h) - '{stored_at,next_check_at}'::text[] || jsonb_build_object('due', next_check_at - stored_at)"
    " FROM half_message AS h ORDER BY h.transaction_id",
    "SELECT to_jsonb(o) - '{stored_at,decided_at}'::text[] FROM operation AS o ORDER BY o.transaction_id",
    "SELECT to_jsonb(l) - 'stored_at' FROM commit_log AS l ORDER BY l.log_offset",
    "SELECT to_jsonb(c) - 'entered_at' FROM consume_queue AS c ORDER BY c.queue_id, c.queue_offset",
)


class Begun(NamedTuple):
    """A begin, as it is packed."""

    key: bytes
    message: Accepted
    group_id: int
    endpoint_id: int | None = None
    immunity_seconds: float = 0.0
    api_key_id: int | None = None
    may_repeat: bool = False


class Ended(NamedTuple):
    """An end, as it is packed."""

    key: bytes
    decision: str = "COMMIT"
    decided_by: str = "producer"
    group_id: int | None = None
    log_offset: int | None = None
    remark: str | None = None
    queue: tuple[int, int] | None = None


class Place:
    """A database with one half message; what is done in it is undone."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection = psycopg.connect(url, options=as_options(SESSION))
        self.topic_id = self.value("INSERT INTO topic (name, queues, permission) VALUES ('t', 2, 'rw') RETURNING id")
        self.group_id = self.value(
            "INSERT INTO producer_group (name, reject_transaction_message, checks_paused, created_at)"
            " VALUES ('g', false, false, now()) RETURNING id"
        )
        self.segment_id = self.value("SELECT id FROM segment WHERE state = 'open'")
        self.connection.execute(
            "INSERT INTO consume_queue (segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset,"
            " tags_code, reconsume_times, entered_at) VALUES (%s, %s, 0, 41, %s, 1, 0, 0, now())",
            [self.segment_id, self.topic_id, self.segment_id],
        )
        self.run(packed.calls_of_begins([self.begin(KEY, tags="paid")], arrays.int4(self.segment_id)))
        self.connection.commit()

    def value(self, text: str) -> int:
        row = self.connection.execute(text.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def begin(self, key: bytes, queue_id: int = QUEUE, message_id: bytes | None = None, **given: Any) -> Begun:
        fields = {name: given.pop(name) for name in list(given) if name in Message.__struct_fields__}
        message = Message(**{"topic": "t", "body": "order 1", **fields})
        own = uuid.UUID(bytes=message_id or MESSAGE[key])
        record = Record.of(message, own, self.topic_id, queue_id, (message.body or "").encode(), None)
        topic = TopicFacts(self.topic_id, "t", queues=2, permission="rw", cell_id=0, version=0)
        accepted = Accepted(message, topic, may_repeat=message_id is not None, content=record)
        return Begun(key, accepted, **{"group_id": self.group_id, **given})

    def run(self, calls: Iterable[Call]) -> Mapping[Any, Any]:
        """The answers of these statements, which this transaction is sent as a pipeline sends them."""
        results = {}
        for statement, parameters in calls:
            values = [parameters[name] for name in statement.parameters]
            result = self.connection.pgconn.exec_params(statement.numbered, values, None, [1] * len(values), 1)
            assert result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK), result.error_message
            results[statement] = result
        return results

    def rows(self) -> list[Any]:
        return [self.connection.execute(text.encode()).fetchall() for text in ROWS]

    @contextmanager
    def undone(self, before: str, queues: Sequence[int]) -> Iterator[None]:
        """A transaction that has these queues locked, and begins with the same offsets as each other one."""
        try:
            self.connection.execute("SELECT setval('commit_log_offset', 1000), setval('operation_id', 1000)")
            if before:
                self.connection.execute(before.encode())
            held = "{" + ",".join(str(self.topic_id << 32 | queue) for queue in queues) + "}"
            self.connection.execute("SELECT set_config('mq.queues', %s, true)", [held if queues else ""])
            yield
        finally:
            self.connection.rollback()

    @contextmanager
    def locked(self, statement: str | None) -> Iterator[None]:
        """Another session holds the rows of this statement."""
        with psycopg.connect(self.url) as other:
            if statement:
                other.execute(statement.encode())
            yield
            other.rollback()


@pytest.fixture(scope="module")
def place(prepared: str) -> Iterator[Place]:
    with databases.copied(prepared) as url:
        place = Place(url)
        yield place
        place.connection.close()


class Of(NamedTuple):
    """One operation, what stands before it, and whether it is left out."""

    given: Mapping[str, Any]
    is_left_out: bool = False
    before: str = ""
    locked: str | None = None
    queues: Sequence[int] = (QUEUE,)
    rolled: int = 0


ENDED_BEFORE = (
    "INSERT INTO operation (segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by,"
    " decided_at, check_times, stored_at, log_segment, log_offset, message_id, topic_id, queue_id)"
    " SELECT log_segment, 1, transaction_id, producer_group_id, 'COMMIT', 'producer', now(), 0, stored_at,"
    " log_segment, log_offset, message_id, topic_id, queue_id FROM half_message; DELETE FROM half_message"
)
BEGINS = {
    "plain": Of({"key": OTHER_KEY}),
    "every field": Of(
        {
            "key": OTHER_KEY,
            "tags": "paid",
            "keys": ["a", "b"],
            "sharding_key": "customer 1",
            "properties": {"shop": "north"},
            "born_at": datetime(2026, 11, 1, tzinfo=UTC),
            "immunity_seconds": 30.0,
            "body": "",
        }
    ),
    "an id of the client's": Of({"key": OTHER_KEY, "may_repeat": True, "message_id": MESSAGE[OTHER_KEY]}),
    "a repeat": Of({"key": KEY, "may_repeat": True}, is_left_out=True),
    "a repeat of one that is decided": Of({"key": KEY, "may_repeat": True}, is_left_out=True, before=ENDED_BEFORE),
    "a message that is stored": Of({"key": OTHER_KEY, "message_id": MESSAGE[KEY]}, is_left_out=True),
    "a group that is gone": Of({"key": OTHER_KEY, "group_id": NO_GROUP + 1}, is_left_out=True),
    "a group that another session deletes": Of({"key": OTHER_KEY}, is_left_out=True, locked=LOCK_GROUP),
    "a segment that was rolled": Of({"key": OTHER_KEY}, is_left_out=True, rolled=1),
}
ENDS = {
    "plain": Of({}),
    "roll back": Of({"decision": "ROLLBACK", "remark": "the customer cancelled"}, queues=()),
    "by a check": Of({"decided_by": "check", "log_offset": -1}),
    "of no group": Of({"group_id": None}),
    "several queues are locked": Of({}, queues=(EMPTY_QUEUE, QUEUE)),
    "another group": Of({"group_id": NO_GROUP}, is_left_out=True),
    "another offset": Of({"log_offset": 4711}, is_left_out=True),
    "unknown": Of({"key": OTHER_KEY}, is_left_out=True),
    "ended before": Of({}, is_left_out=True, before=ENDED_BEFORE),
    "discarded": Of({}, is_left_out=True, before="UPDATE half_message SET discarded_at = '2026-11-01'"),
    "delayed": Of({}, is_left_out=True, before="UPDATE half_message SET delays = '[1]'"),
    "delayed and rolled back": Of({"decision": "ROLLBACK"}, before="UPDATE half_message SET delays = '[1]'"),
    "an older segment": Of({}, is_left_out=True, before="UPDATE half_message SET log_segment = log_segment - 2"),
    "no tags": Of({}, before="UPDATE half_message SET tags_code = NULL"),
    "locked by another session": Of({}, is_left_out=True, locked=LOCK_HALF),
    "no queue is locked": Of({}, is_left_out=True, queues=()),
    "another queue is locked": Of({}, is_left_out=True, queues=(EMPTY_QUEUE,)),
    "no entry in the segment": Of(
        {}, is_left_out=True, before="UPDATE half_message SET queue_id = 1", queues=(QUEUE, EMPTY_QUEUE)
    ),
    "a segment that was rolled": Of({}, is_left_out=True, rolled=1),
}


@pytest.mark.parametrize("name", BEGINS)
def test_a_half_message_is_written_as_one_and_as_one_of_many(place: Place, name: str) -> None:
    case = BEGINS[name]
    one = place.begin(**case.given)
    # It is left out, and leaves nothing.
    other = place.begin(UNKNOWN, group_id=NO_GROUP)
    with place.locked(case.locked):
        segment_id = arrays.int4(place.segment_id + case.rolled)
        with place.undone(case.before, case.queues):
            _, [alone] = packed.begun(place.run(packed.calls_of_begins([one], segment_id)))
            rows = place.rows()
        with place.undone(case.before, case.queues):
            _, [together, _] = packed.begun(place.run(packed.calls_of_begins([one, other], segment_id)))
            assert place.rows() == rows

    assert alone == together == (None if case.is_left_out else 1001)


@pytest.mark.parametrize("name", ENDS)
def test_an_end_is_written_as_one_and_as_one_of_many(place: Place, name: str) -> None:
    case = ENDS[name]
    given = {"key": KEY, "group_id": place.group_id, **case.given}
    if given.get("log_offset") == -1:
        given["log_offset"] = place.value("SELECT log_offset FROM half_message")
    one, other = Ended(**given), Ended(UNKNOWN)
    with place.locked(case.locked):
        segment_id = arrays.int4(place.segment_id + case.rolled)
        with place.undone(case.before, case.queues):
            alone = list(packed.ended(place.run(packed.calls_of_ends([one], segment_id))))
            rows = place.rows()
        with place.undone(case.before, case.queues):
            together = list(packed.ended(place.run(packed.calls_of_ends([one, other], segment_id))))
            assert place.rows() == rows

    assert alone == together
    assert len(alone) == (0 if case.is_left_out else 1)


@pytest.mark.parametrize(
    ("many", "one"),
    [
        (packed.BEGIN_HALVES, packed.BEGIN_HALVES_OF_ONE),
        (log.APPEND_NUMBERED, log.APPEND_NUMBERED_OF_ONE),
        (packed.END_FREE_HALVES, packed.END_FREE_HALVES_OF_ONE),
    ],
    ids=lambda statement: statement.name,
)
def test_both_forms_of_a_statement_take_the_same_columns(many: Statement[Any], one: Statement[Any]) -> None:
    assert sorted(one.parameters) == sorted(many.parameters)
