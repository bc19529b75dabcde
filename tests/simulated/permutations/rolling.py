"""A segment that is rolled while an old half message is committed, others are sent, and the queue is read."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from scheduling.sending.send import Send
from store.commit import writer
from store.db import connections
from store.messages import Message
from store.naming import topics
from store.queues import READ_ENTRIES
from store.segments import lifecycle
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.permutations.writing import written
from transactions.operations.begin import Begin
from transactions.operations.end import End
from transactions.operations.validation import BeginTransaction

GROUP = "archive"
# As before the roll: the next segment is open, and the one behind that ready, with its partitions.
AGAIN = (
    "DELETE FROM consume_queue WHERE segment_id = %(ready)s",
    "DELETE FROM operation WHERE segment_id = %(ready)s",
    "DELETE FROM commit_log WHERE segment_id = %(ready)s",
    "UPDATE segment SET state = 'ready', opened_at = NULL WHERE id = %(ready)s",
    "UPDATE segment SET state = 'open', closed_at = NULL WHERE id = %(open)s",
)
COPY = """
WITH stored AS (
    INSERT INTO commit_log
    SELECT (jsonb_populate_record(m, jsonb_build_object(
        'log_offset', nextval('commit_log_offset'), 'message_id', gen_random_uuid(), 'transaction_id', %(id)s::uuid
    ))).*
    FROM commit_log AS m WHERE m.transaction_id = %(first)s AND m.segment_id = %(old)s
    RETURNING log_offset, message_id
)
INSERT INTO half_message
SELECT (jsonb_populate_record(h, jsonb_build_object(
    'transaction_id', %(id)s::uuid, 'log_offset', s.log_offset, 'message_id', s.message_id
))).*
FROM half_message AS h, stored AS s WHERE h.transaction_id = %(first)s
"""
LOOK = """
SELECT
    count(*) - count(DISTINCT c.queue_offset) AS twice,
    max(c.queue_offset) + 1 - count(DISTINCT c.queue_offset) AS missing,
    count(*) FILTER (WHERE c.log_segment < c.segment_id - 1) AS far,
    count(*) FILTER (WHERE m.message_id IS NULL) AS without_body,
    count(*) FILTER (WHERE c.entered_at > s.closed_at) AS behind_the_end
FROM consume_queue AS c
INNER JOIN segment AS s ON c.segment_id = s.id
LEFT JOIN commit_log AS m ON c.log_segment = m.segment_id AND c.log_offset = m.log_offset
WHERE c.topic_id = %(topic)s
"""
OWN_STEPS = (
    "^INSERT INTO operation",
    "ALTER COLUMN",
    "^SELECT pg_advisory_xact_lock\\(q",
    "^ROLLBACK",
    "^UPDATE segment",
    "^SELECT[^;]*FROM pg_",
)


class Rolling(Scenario):
    """Some of: `roll`, `end` (the commit of a half message whose body lies two segments back), `send`, `read`."""

    inner = OWN_STEPS
    leading = ("'mq.ending'",)

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str]) -> None:
        self._watch, self._names = watch, names
        self._first: uuid.UUID | None = None
        self.id = uuid.UUID(int=0)
        # Of its own: what a planted fault has left in a queue is not looked at again.
        self._name = f"letters-{uuid.uuid4()}"
        self._topic = 0
        self._segments: dict[str, int] = {}

    async def begin(self) -> Mapping[str, Work]:
        if self._first is None:
            await self._prepare()
        for statement in AGAIN:
            self._watch.execute(statement.encode(), self._segments)
        self.id = uuid.uuid4()
        self._watch.execute(COPY.encode(), {"id": self.id, "first": self._first, **self._segments})
        works = {"end": self._end, "roll": self._roll, "read": self._read}
        return {name: of_stage(await self._send() if name == "send" else works[name]) for name in self._names}

    async def _prepare(self) -> None:
        request = BeginTransaction(topic=self._name, body="letter", producer_group=GROUP, queue_id=0,
                                   check_immunity_seconds=600)  # fmt: skip
        await writer.run(Send(Message(topic=self._name, body="letter", queue_id=0)))
        self._first = (await writer.run(Begin(request))).transaction_id
        async with await connections.connect("test") as connection:
            await lifecycle.prepare(connection)
            opened = await lifecycle.roll(connection, max_hours=0, max_messages=0) or 0
            await lifecycle.prepare(connection)
        self._segments = {"old": opened - 1, "open": opened, "ready": opened + 1}
        # The first entry of a queue in a segment is one of the stepwise writer's.
        await writer.run(Send(Message(topic=self._name, body="letter", queue_id=0)))
        self._topic = (await topics.for_reading(self._name)).id

    async def _end(self, connection: StageConnection) -> object:
        ended: Any = await written(connection, End(self.id, "COMMIT", "producer"))
        return ended.state

    async def _roll(self, connection: StageConnection) -> object:
        opened = await lifecycle.roll(connection, max_hours=0, max_messages=0)
        return "rolled" if opened == self._segments["ready"] else opened

    async def _send(self) -> Any:
        operation = Send(Message(topic=self._name, body="letter", queue_id=0))
        if not operation.ready():
            await operation.complete()

        async def work(connection: StageConnection) -> object:
            sent: Any = await written(connection, operation)
            return len(sent)

        return work

    async def _read(self, connection: StageConnection) -> object:
        asked = {"topic_id": self._topic, "queue_id": 0, "from_offset": 0, "max_entries": 1000}
        rows = await connections.execute(connection, READ_ENTRIES, {**asked, "max_bytes": 2**20, "most_of_first": None})
        offsets = [row.queue_offset for row in rows]
        return "dense" if offsets == list(range(len(offsets))) else offsets

    async def outcome(self, answers: Mapping[str, object]) -> object:
        return dict(answers), self._watch.execute(LOOK.encode(), {"topic": self._topic}).fetchone()

    def serial(self, order: Sequence[str]) -> object:
        answers: dict[str, object] = {"end": "COMMITTED", "roll": "rolled", "send": 1, "read": "dense"}
        return {name: answers[name] for name in order}, (0, 0, 0, 0, 0)
