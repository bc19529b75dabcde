"""A delivery that its consumer acks and extends as its time runs out."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import psycopg

from delivery import groups
from delivery.receipts.expiry import Expiry
from delivery.receipts.handles import Handle, handle
from delivery.receipts.settling import Ack, Extension
from delivery.retries import nonces
from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.naming import topics
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import Clock, StageConnection, of_stage, tick
from tests.simulated.permutations.writing import written

GROUP, TOPIC = "coupon-service", "coupons"
# Of the delivery, of the extension, and what passes meanwhile.
INVISIBLE, MORE, PASSES = 3600, 36_000, 7200
DELIVER = """
WITH gone AS (DELETE FROM receipt), emptied AS (DELETE FROM bundle)
INSERT INTO receipt (
    group_id, topic_id, queue_id, queue_offset, nonce, expires_at, received_at, log_segment, log_offset, tags_code,
    reconsume_times, origin_topic_id, state
)
SELECT
    %(group)s, m.topic_id, 0, %(offset)s, %(nonce)s, pg_catalog.now() + make_interval(secs => %(seconds)s),
    pg_catalog.now(), m.segment_id, m.log_offset, 0, 0, m.topic_id, 'flight'
FROM commit_log AS m WHERE m.message_id = %(message)s
RETURNING topic_id
"""
LOOK = """
SELECT
    (SELECT count(*) FROM receipt),
    (SELECT count(*) FROM consume_queue AS c WHERE c.topic_id = %(retries)s)
"""
# The group is not ordered, so that nothing is found to be held; and the delivery is in no bundle.
OWN_STEPS = (
    *("^INSERT INTO consume_queue", "^SELECT pg_advisory_xact_lock", "^ROLLBACK", "FOR SHARE OF g"),
    "FROM bundle AS b",
)
# Without an extension nothing comes between the two looks of `settled`.
TWO_LOOKS = "^WITH found AS"


class Delivering(Scenario):
    """Some of: `ack`, `extend`, `expire` (the broker takes what is over), `again` (another process does), `time`."""

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str]) -> None:
        self._watch, self._names = watch, names
        self.inner = OWN_STEPS if {"ack", "extend"} <= {*names} else (*OWN_STEPS, TWO_LOOKS)
        self.clock: Clock | None = Clock()
        # Where no time passes, the time of the delivery is over for those who only look for that.
        self._begins_at = PASSES if {*names} == {"expire", "again"} else 0
        self._offsets = count(1)
        self._message: Any = None
        self._before = 0

    async def begin(self) -> Mapping[str, Work]:
        assert self.clock is not None
        if self._message is None:
            await groups.for_consuming(GROUP)
            self._message = (await writer.run(Send(Message(topic=TOPIC, body="coupon", queue_id=0))))[0].message_id
            topic = await topics.for_reading(TOPIC)
            group = await groups.existing(GROUP)
            await groups.retry_queue_of(group.id, GROUP, topic.id)
        self.clock.seconds = self._begins_at
        self._group = await groups.existing(GROUP)
        offset, nonce = next(self._offsets), nonces.new_nonce(again_at_once=True)
        given = {"group": self._group.id, "offset": offset, "nonce": nonce, "seconds": INVISIBLE}
        [topic_id] = self._watch.execute(DELIVER.encode(), {**given, "message": self._message}).fetchone() or (0,)
        self._handle = Handle(self._group.id, topic_id, 0, offset, nonce)
        retries = await groups.retry_topic(GROUP)
        self._retries = {"retries": retries.id}
        self._before = self._look()[1]
        works = {"ack": self._ack, "extend": self._extend, "expire": self._expire, "again": self._expire}
        return {name: tick(self.clock, PASSES) if name == "time" else of_stage(works[name]) for name in self._names}

    async def _ack(self, connection: StageConnection) -> object:
        operation = Ack(GROUP, [handle(*self._handle)])
        await operation.complete()
        done: Any = await written(connection, operation)
        return self._handle in done

    async def _extend(self, connection: StageConnection) -> object:
        done: Any = await written(connection, Extension({self._handle}, MORE))
        return self._handle in done

    async def _expire(self, connection: StageConnection) -> object:
        return await written(connection, Expiry())

    def _look(self) -> tuple[int, int]:
        row = self._watch.execute(LOOK.encode(), self._retries).fetchone()
        assert row is not None
        return row[0], row[1]

    async def outcome(self, answers: Mapping[str, object]) -> object:
        receipts, retries = self._look()
        return dict(answers), receipts, retries - self._before

    def serial(self, order: Sequence[str]) -> object:
        now, over_at, retried = self._begins_at, INVISIBLE, 0
        is_there = True
        answers: dict[str, object] = {}
        for name in order:
            is_open = is_there and over_at > now
            if name == "time":
                now, answers[name] = now + PASSES, None
            elif name == "extend":
                over_at, answers[name] = (now + MORE if is_open else over_at), is_open
            elif name == "ack":
                is_there, answers[name] = is_there and not is_open, is_open
            else:
                answers[name] = int(is_there and not is_open)
                retried += int(is_there and not is_open)
                is_there = is_open
        return answers, int(is_there), retried
