"""Four messages that consumers of one group, plain or fair, receive at the same time: each two, which are a bundle.

At this time a process of an earlier version may beat, which takes deliveries by their receipts only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from delivery import groups
from delivery.receive.deliveries import Handout, Receiver
from delivery.receive.fair import kind_of
from delivery.receive.receives import Receive, Terms
from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.naming import topics
from store.process.answer_budget import Hold
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.permutations.writing import written

GROUP, FAIR_GROUP, TOPIC = "parcel-service", "letter-service", "claims"
EARLIER = "earlier"
# The group has read what there is; nothing of it is in flight.
READ_ALL = """
WITH gone AS (DELETE FROM receipt), emptied AS (DELETE FROM bundle), forgotten AS (DELETE FROM waiting)
INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT
    s.id, %(group)s, %(topic)s, 0,
    coalesce((SELECT max(p.move) FROM progress AS p WHERE p.reader_id = %(group)s AND p.topic_id = %(topic)s), 0) + 1,
    coalesce((SELECT max(c.queue_offset) FROM consume_queue AS c WHERE c.topic_id = %(topic)s), -1) + 1, now()
FROM segment AS s WHERE s.state = 'open'
"""
# Only processes of this version have beaten.
BEAT = """
WITH gone AS (DELETE FROM heartbeat)
INSERT INTO heartbeat (process, kind, beaten_at, bundles_at) VALUES (clock_timestamp()::text, 'web', now(), now())
"""
BEAT_BEFORE = b"INSERT INTO heartbeat (process, kind, beaten_at) VALUES ('web 1 at earlier', 'web', now())"
LOOK = """
SELECT
    (SELECT count(*) FROM receipt),
    (SELECT coalesce(sum(length(replace(b.unsettled::bit(64)::text, '0', ''))), 0)::integer FROM bundle AS b),
    (SELECT p.next_offset FROM progress AS p WHERE p.reader_id = %(group)s AND p.topic_id = %(topic)s
     ORDER BY p.move DESC LIMIT 1)
    - (SELECT coalesce(sum(cardinality(w.offsets) - w.taken), 0) FROM waiting AS w)
"""
PART = b"UPDATE consumer_group SET fair_by = 'sharding_key' WHERE name = %s"
BODIES = ("first", "second", "third", "fourth")
EACH = 2


class Claiming(Scenario):
    """`one` and `other`: receives of two messages, by two processes; `earlier`: the heartbeat of an earlier version."""

    inner = (
        *("^INSERT INTO progress", "^SELECT pg_advisory_xact_lock", "^ROLLBACK", "current_setting\\('mq.handed'"),
        # What a fair group does under the same locks.
        *("'mq.ahead'", "^WITH RECURSIVE reading"),
    )

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str], *, is_fair: bool) -> None:
        self._watch, self._names, self._is_fair = watch, names, is_fair
        self._group = FAIR_GROUP if is_fair else GROUP
        self._ids: dict[str, int] = {}
        self._next = 0

    async def begin(self) -> Mapping[str, Work]:
        if not self._ids:
            await groups.for_consuming(self._group)
            if self._is_fair:
                self._watch.execute(PART, [self._group])
                groups.forget(self._group)
            await writer.run(Send(Message(topic=TOPIC, body="before", queue_id=0)))
            self._ids = {
                "group": (await groups.existing(self._group)).id,
                "topic": (await topics.for_reading(TOPIC)).id,
            }
            if self._is_fair:
                # The first receive counts what waits, in steps.
                await writer.run(kind_of(receiver := await self._receiver())(receiver))
        self._watch.execute(READ_ALL.encode(), self._ids)
        self._watch.execute(BEAT.encode())
        sent = [(await writer.run(Send(Message(topic=TOPIC, body=body, queue_id=0))))[0] for body in BODIES]
        self._next = (sent[0].queue_offset or 0) + len(BODIES)
        return {name: of_stage(_beat if name == EARLIER else await self._receive()) for name in self._names}

    async def _receiver(self) -> Receiver:
        terms = Terms.of(self._group, Receive(topic=TOPIC, max_messages=EACH), None, again_at_once=False)
        return await terms.receiver(Hold(), None, 0)

    async def _receive(self) -> Any:
        receiver = await self._receiver()

        async def work(connection: StageConnection) -> object:
            found = await written(connection, kind_of(receiver)(receiver))
            assert isinstance(found, Handout)
            return [len(BODIES) - (self._next - handed.queue_offset) for handed in found.entries]

        return work

    async def outcome(self, answers: Mapping[str, object]) -> object:
        receipts, bundled, next_offset = self._watch.execute(LOOK.encode(), self._ids).fetchone() or (0, 0, 0)
        return dict(answers), receipts, bundled, self._next - next_offset

    def serial(self, order: Sequence[str]) -> object:
        receives = [name for name in order if name != EARLIER]
        handed: dict[str, object] = dict.fromkeys(order)
        handed |= {
            name: list(range(len(BODIES)))[number * EACH : (number + 1) * EACH] for number, name in enumerate(receives)
        }
        deliveries = min(len(receives) * EACH, len(BODIES))
        receipts = deliveries if EARLIER in order else 0
        return handed, receipts, deliveries - receipts, len(BODIES) - deliveries


async def _beat(connection: StageConnection) -> None:
    await connection.execute(BEAT_BEFORE)
