"""Four messages that consumers of one group receive at the same time, each two: a plain group, a fair one, with limits.

The two messages of a receive are a bundle, unless a limit counts them.

At this time a process of an earlier version may beat, which takes deliveries by their receipts only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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

TOPIC = "claims"
EARLIER = "earlier"
# The group has read what there is; nothing of it is in flight.
READ_ALL = """
WITH gone AS (DELETE FROM receipt), emptied AS (DELETE FROM bundle), forgotten AS (DELETE FROM waiting),
spent AS (DELETE FROM pace)
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
CHANGE = b"UPDATE consumer_group SET fair_by = %s, limits = %s WHERE name = %s"
BODIES = ("first", "second", "third", "fourth")
EACH = 2


class Group(NamedTuple):
    """A consumer group; `room`: how many of the messages its limits let it have at once."""

    name: str
    fair_by: str | None = None
    limits: str | None = None
    room: int = len(BODIES)

    @property
    def reads_ahead(self) -> bool:
        return self.fair_by is not None or self.limits is not None


PLAIN, FAIR = Group("parcel-service"), Group("letter-service", "sharding_key")
IN_FLIGHT = Group("guarded-service", limits='{"by": "sharding_key", "in_flight": 3}', room=3)
PACED = Group("paced-service", limits='{"by": "group", "per_second": 0.001, "burst": 3}', room=3)


class Claiming(Scenario):
    """`one` and `other`: receives of two messages, by two processes; `earlier`: the heartbeat of an earlier version."""

    inner = (
        *("^INSERT INTO progress", "^SELECT pg_advisory_xact_lock", "^ROLLBACK", "current_setting\\('mq.handed'"),
        # What a fair or limited group does under the same locks.
        *("'mq.ahead'", "^WITH RECURSIVE reading"),
    )

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str], group: Group) -> None:
        self._watch, self._names, self._group = watch, names, group
        self._ids: dict[str, int] = {}
        self._next = 0

    async def begin(self) -> Mapping[str, Work]:
        if not self._ids:
            await groups.for_consuming(self._group.name)
            if self._group.reads_ahead:
                self._watch.execute(CHANGE, [self._group.fair_by, self._group.limits, self._group.name])
                groups.forget(self._group.name)
            await writer.run(Send(Message(topic=TOPIC, body="before", queue_id=0)))
            self._ids = {
                "group": (await groups.existing(self._group.name)).id,
                "topic": (await topics.for_reading(TOPIC)).id,
            }
            if self._group.reads_ahead:
                # The first receive counts what waits, in steps.
                await writer.run(kind_of(receiver := await self._receiver())(receiver))
        self._watch.execute(READ_ALL.encode(), self._ids)
        self._watch.execute(BEAT.encode())
        sent = [(await writer.run(Send(Message(topic=TOPIC, body=body, queue_id=0))))[0] for body in BODIES]
        self._next = (sent[0].queue_offset or 0) + len(BODIES)
        return {name: of_stage(_beat if name == EARLIER else await self._receive()) for name in self._names}

    async def _receiver(self) -> Receiver:
        terms = Terms.of(self._group.name, Receive(topic=TOPIC, max_messages=EACH), None, again_at_once=False)
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
            name: list(range(self._group.room))[number * EACH : (number + 1) * EACH]
            for number, name in enumerate(receives)
        }
        deliveries = min(len(receives) * EACH, self._group.room)
        # A delivery that counts, and the only delivery of a receive, lies in no bundle.
        counts = self._group.limits is not None and "in_flight" in self._group.limits
        receipts = deliveries if EARLIER in order or counts else deliveries % EACH
        return handed, receipts, deliveries - receipts, len(BODIES) - deliveries


async def _beat(connection: StageConnection) -> None:
    await connection.execute(BEAT_BEFORE)
