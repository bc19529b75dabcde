"""Two deliveries of one bundle: one is acked, forwarded or extended, the other is settled by another consumer."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import psycopg
from mqbroker_client.core.ids import uuid7

from delivery import groups
from delivery.receipts.bundles import PLACES
from delivery.receipts.failing import Nack
from delivery.receipts.forward import Forward
from delivery.receipts.handles import Handle, handle
from delivery.receipts.settling import Ack, Extension
from delivery.retries import nonces
from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.naming import topics
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.permutations.writing import kind, written

GROUP, TOPIC, MADE = "voucher-service", "vouchers", "redeemed"
FORWARDS = ("forward", "again")
# Of the deliveries, and of an extension.
INVISIBLE, MORE = 3600, 36_000
DELIVER = """
WITH gone AS (DELETE FROM receipt), emptied AS (DELETE FROM bundle)
INSERT INTO bundle (
    group_id, topic_id, queue_id, first_offset, nonce, places, unsettled, expires_at, received_at, log_segment,
    origin_topic_id, log_offsets
)
SELECT
    %(group)s, m.topic_id, 0, %(offset)s, %(nonce)s, 3, 3, pg_catalog.now() + make_interval(secs => %(seconds)s),
    pg_catalog.now(), m.segment_id, m.topic_id, ARRAY[m.log_offset, m.log_offset]
FROM commit_log AS m WHERE m.message_id = %(message)s
RETURNING topic_id
"""
LOOK = """
SELECT
    (SELECT count(*) FROM receipt)
    + (SELECT coalesce(sum(length(replace(b.unsettled::bit(64)::text, '0', ''))), 0)::integer FROM bundle AS b),
    (SELECT count(*) FROM consume_queue AS c WHERE c.topic_id = %(retries)s),
    (SELECT count(*) FROM consume_queue AS c WHERE c.topic_id = %(made)s)
"""


class Bundling(Scenario):
    """Some of: `ack`, `extend` (of one delivery), `neighbour` (the ack of the other one), `fails` (its nack).

    `forward` and `again` are one call that acks the first delivery with a message, by two processes.
    """

    inner = ("^INSERT INTO consume_queue", "^SELECT pg_advisory_xact_lock", "^ROLLBACK", "FOR SHARE OF g", "FOR SHARE$")

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str]) -> None:
        self._watch, self._names = watch, names
        self._offsets = count(PLACES, PLACES)
        self._message: Any = None
        self._before: tuple[int, ...] = ()

    async def begin(self) -> Mapping[str, Work]:
        if self._message is None:
            await groups.for_consuming(GROUP)
            self._message = (await writer.run(Send(Message(topic=TOPIC, body="voucher", queue_id=0))))[0].message_id
            topic = await topics.for_reading(TOPIC)
            group = await groups.existing(GROUP)
            await groups.retry_queue_of(group.id, GROUP, topic.id)
            await writer.run(Send(Message(topic=MADE, body="before", queue_id=0)))
        group = await groups.existing(GROUP)
        offset, nonce = next(self._offsets), nonces.new_nonce(again_at_once=True) | nonces.BUNDLED
        given = {"group": group.id, "offset": offset, "nonce": nonce, "seconds": INVISIBLE}
        [topic_id] = self._watch.execute(DELIVER.encode(), {**given, "message": self._message}).fetchone() or (0,)
        self._handles = [Handle(group.id, topic_id, 0, offset + place, nonce) for place in range(2)]
        made = await topics.for_reading(MADE)
        self._topics = {"retries": (await groups.retry_topic(GROUP)).id, "made": made.id}
        self._before = self._look()[1:]
        self._made = Message(topic=MADE, body="made", queue_id=0, message_id=uuid7())
        works = {
            "ack": self._acks(0),
            "neighbour": self._acks(1),
            "extend": self._extend,
            "fails": self._fails,
            "forward": self._forward,
            "again": self._forward,
        }
        return {name: of_stage(works[name]) for name in self._names}

    def _acks(self, place: int) -> Any:
        async def ack(connection: StageConnection) -> object:
            operation = Ack(GROUP, [handle(*self._handles[place])])
            await operation.complete()
            done: Any = await written(connection, operation)
            return self._handles[place] in done

        return ack

    async def _extend(self, connection: StageConnection) -> object:
        done: Any = await written(connection, Extension({self._handles[0]}, MORE))
        return self._handles[0] in done

    async def _fails(self, connection: StageConnection) -> object:
        done: Any = await written(connection, Nack({self._handles[1]}, 0, None))
        return self._handles[1] in done

    async def _forward(self, connection: StageConnection) -> object:
        operation = Forward(GROUP, [handle(*self._handles[0])], [self._made])
        await operation.complete()
        answer = await written(connection, operation)
        assert kind(answer) == "receipt_expired" or isinstance(answer, list), answer
        return isinstance(answer, list)

    def _look(self) -> tuple[int, ...]:
        return self._watch.execute(LOOK.encode(), self._topics).fetchone() or ()

    async def outcome(self, answers: Mapping[str, object]) -> object:
        left, *others = self._look()
        return dict(answers), left, *(now - before for now, before in zip(others, self._before, strict=True))

    def serial(self, order: Sequence[str]) -> object:
        left, retried, made = {0, 1}, 0, 0
        answers: dict[str, object] = {}
        for name in order:
            place = 1 if name in ("neighbour", "fails") else 0
            answers[name] = place in left
            if name in FORWARDS:
                # A repeat is answered like the first call.
                answers[name], made = place in left or made > 0, made + (place in left)
            if name != "extend":
                left.discard(place)
            retried += name == "fails"
        return answers, len(left), retried, made
