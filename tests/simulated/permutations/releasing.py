"""A delayed message that is recalled as it becomes due: by a timer, or at a delay level."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg

from scheduling import recalls
from scheduling.recalls import Recall
from scheduling.release import Due, Release
from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.naming import topics
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import Clock, StageConnection, of_stage
from tests.simulated.permutations.writing import kind, written

TOPIC = "reminders"
# Two hours, by the queue of its level, and what passes before the release.
LEVEL, QUEUE, PASSES = 18, 17, 10_800.0
# Of earlier runs nothing is left to release.
CLEAR = """
WITH gone AS (DELETE FROM timer), forgotten AS (DELETE FROM recall)
INSERT INTO progress (segment_id, reader_id, topic_id, queue_id, move, next_offset, moved_at)
SELECT
    1, 0, %(schedule)s, %(queue)s,
    coalesce((SELECT max(p.move) FROM progress AS p WHERE p.reader_id = 0 AND p.topic_id = %(schedule)s), 0) + 1,
    coalesce((SELECT max(c.queue_offset) FROM consume_queue AS c WHERE c.topic_id = %(schedule)s), -1) + 1, now()
"""
LOOK = """
SELECT
    (SELECT count(*) FROM consume_queue AS c INNER JOIN commit_log AS m USING (log_offset)
     WHERE m.message_id = %(id)s AND c.topic_id = m.topic_id),
    (SELECT count(*) FROM timer AS t WHERE t.message_id = %(id)s)
"""
WAITS = """
SELECT
    (SELECT t.id FROM timer AS t WHERE t.message_id = %(id)s),
    (SELECT c.queue_offset FROM consume_queue AS c INNER JOIN commit_log AS m USING (log_offset)
     WHERE m.message_id = %(id)s AND c.topic_id = %(schedule)s)
"""
OWN_STEPS = (
    "^INSERT INTO (consume_queue|progress)",
    "^SELECT pg_advisory_xact_lock\\(q",
    "^ROLLBACK",
    # Under the lock of the level, which guards what they read.
    "AS begun",
    "AS due_ms",
    "^DELETE FROM recall",
)


class Releasing(Scenario):
    """`release`, `recall`, and `again`, the release of another process."""

    inner = OWN_STEPS

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str], *, at_level: bool) -> None:
        self._watch, self._names, self._at_level = watch, names, at_level
        self.clock: Clock | None = Clock()
        self._ids: dict[str, object] = {}

    async def begin(self) -> Mapping[str, Work]:
        assert self.clock is not None
        self.clock.seconds = PASSES
        schedule = await topics.own(topics.SCHEDULE, queues=LEVEL)
        self._watch.execute(CLEAR.encode(), {"schedule": schedule.id, "queue": QUEUE})
        delay: dict[str, Any] = {"delay_level": LEVEL} if self._at_level else {"delay_seconds": 7200}
        [sent] = await writer.run(Send(Message(topic=TOPIC, body="now", queue_id=0, **delay)))
        self._ids = {"id": sent.message_id, "schedule": schedule.id}
        timer, offset = self._watch.execute(WAITS.encode(), self._ids).fetchone() or (None, None)
        self._waits = recalls.Handle(sent.message_id, timer, None if timer else QUEUE, offset)
        works = {"release": self._release, "again": self._release, "recall": self._recall}
        return {name: of_stage(works[name]) for name in self._names}

    async def _release(self, connection: StageConnection) -> object:
        levels = (QUEUE,) if self._at_level else ()
        return await written(connection, Release(Due(datetime.now(UTC), levels, not self._at_level, None)))

    async def _recall(self, connection: StageConnection) -> object:
        answer = kind(await written(connection, Recall(self._waits)))
        return getattr(answer, "state", answer)

    async def outcome(self, answers: Mapping[str, object]) -> object:
        row = self._watch.execute(LOOK.encode(), self._ids).fetchone()
        # What a release answers is how far it came: a session that keeps it from a lock has it come again.
        return {"recall": answers.get("recall"), "visible": row[0] if row else 0}

    def serial(self, order: Sequence[str]) -> object:
        state = "WAITS"
        for name in order:
            if state == "WAITS":
                state = "RECALLED" if name == "recall" else "VISIBLE"
        recall = None if "recall" not in order else "RECALLED" if state == "RECALLED" else "already_delivered"
        return {"recall": recall, "visible": int(state == "VISIBLE")}
