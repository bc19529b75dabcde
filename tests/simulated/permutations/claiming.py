"""Four messages that consumers of one group receive at the same time, each of them two, which lie in a bundle.

At this time a process of an earlier version may beat, which takes deliveries by their receipts only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from delivery import groups
from delivery.receive.deliveries import Handout
from delivery.receive.handout import Receiving
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

GROUP, TOPIC = "parcel-service", "claims"
EARLIER = "earlier"
# The group has read what there is; nothing of it is in flight.
READ_ALL = """
WITH gone AS (DELETE FROM receipt), emptied AS (DELETE FROM bundle)
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
"""
BODIES = ("first", "second", "third", "fourth")
EACH = 2


class Claiming(Scenario):
    """`one` and `other`: receives of two messages, by two processes; `earlier`: the heartbeat of an earlier version."""

    inner = ("^INSERT INTO progress", "^SELECT pg_advisory_xact_lock", "^ROLLBACK", "current_setting\\('mq.handed'")

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str]) -> None:
        self._watch, self._names = watch, names
        self._ids: dict[str, int] = {}
        self._next = 0

    async def begin(self) -> Mapping[str, Work]:
        if not self._ids:
            await groups.for_consuming(GROUP)
            await writer.run(Send(Message(topic=TOPIC, body="before", queue_id=0)))
            self._ids = {"group": (await groups.existing(GROUP)).id, "topic": (await topics.for_reading(TOPIC)).id}
        self._watch.execute(READ_ALL.encode(), self._ids)
        self._watch.execute(BEAT.encode())
        sent = [(await writer.run(Send(Message(topic=TOPIC, body=body, queue_id=0))))[0] for body in BODIES]
        self._next = (sent[0].queue_offset or 0) + len(BODIES)
        return {name: of_stage(_beat if name == EARLIER else await self._receive()) for name in self._names}

    async def _receive(self) -> Any:
        request = Receive(topic=TOPIC, max_messages=EACH)
        terms = Terms.of(GROUP, request, None, again_at_once=False)
        receiver = await terms.receiver(Hold(), None, 0)

        async def work(connection: StageConnection) -> object:
            found = await written(connection, Receiving(receiver))
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
