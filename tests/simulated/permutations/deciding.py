"""One transaction and those who decide it: its producer, a check, the limit of checks, operators."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg

from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.naming import topics
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.permutations.writing import kind, written
from transactions.checks.outcomes import Attempt, Postponement
from transactions.discards import Discard, Resume
from transactions.operations.begin import Begin
from transactions.operations.end import End
from transactions.operations.validation import BeginTransaction

GROUP, TOPIC = "order-service", "orders"
STATES = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}
LOOK = """
SELECT
    (SELECT CASE WHEN h.discarded_at IS NULL THEN 'PREPARED' ELSE 'DISCARDED' END || ' ' || h.check_times
     FROM half_message AS h WHERE h.transaction_id = %(id)s) AS half,
    (SELECT array_agg(o.decision || ' ' || o.check_times ORDER BY o.operation_id)
     FROM operation AS o WHERE o.transaction_id = %(id)s) AS operations,
    (SELECT count(*) FROM consume_queue AS c INNER JOIN commit_log AS m USING (log_offset)
     WHERE m.transaction_id = %(id)s AND c.topic_id = m.topic_id) AS visible
"""
# A run has a transaction of its own: a copy of the first one, which the broker's own code has begun.
COPY = """
WITH stored AS (
    INSERT INTO commit_log
    SELECT (jsonb_populate_record(m, jsonb_build_object(
        'log_offset', nextval('commit_log_offset'), 'message_id', gen_random_uuid(), 'transaction_id', %(id)s::uuid
    ))).*
    FROM commit_log AS m WHERE m.transaction_id = %(first)s
    RETURNING log_offset, message_id
), half AS (
    INSERT INTO half_message
    SELECT (jsonb_populate_record(h, jsonb_build_object(
        'transaction_id', %(id)s::uuid, 'log_offset', s.log_offset, 'message_id', s.message_id,
        'discarded_at', %(discarded_at)s::timestamptz, 'line', 0, 'exhausted', true
    ))).*
    FROM half_message AS h, stored AS s WHERE h.transaction_id = %(first)s
)
INSERT INTO operation
SELECT (jsonb_populate_record(NULL::operation, jsonb_build_object(
    'segment_id', 1, 'operation_id', nextval('operation_id'), 'transaction_id', %(id)s::uuid, 'producer_group_id', 1,
    'decision', 'DISCARD', 'decided_by', 'limit', 'decided_at', now(), 'check_times', 0, 'stored_at', now(),
    'log_segment', 1
))).*
WHERE %(discarded_at)s::timestamptz IS NOT NULL
"""
# No other session's step has to come before these: they write rows of the session's own, or lock what it alone wants.
OWN_STEPS = (
    "^INSERT INTO (operation|check_attempt|consume_queue)",
    "^SELECT pg_advisory_xact_lock",
    "^ROLLBACK",
)


class Model:
    """A transaction, of which each call decides at once."""

    def __init__(self, state: str) -> None:
        self.state, self.checks, self.history = state, 0, [] if state == "PREPARED" else ["DISCARD 0"]
        # A worker has found that the transaction has had its checks.
        self.exhausted = True

    def end(self, decision: str, *, discarded: bool = False) -> str:
        if self.state in STATES.values():
            return self.state if self.state == STATES[decision] else "transaction_ended"
        if (self.state == "DISCARDED") != discarded:
            return "transaction_not_found" if discarded else "transaction_discarded"
        self.state = STATES[decision]
        self.history.append(f"{decision} {self.checks}")
        return self.state

    def check(self) -> bool:
        if self.state == "PREPARED":
            self.checks += 1
            self.exhausted = False
        return True

    def discard(self) -> int:
        if self.state != "PREPARED" or not self.exhausted:
            return 0
        self.state = "DISCARDED"
        self.history.append(f"DISCARD {self.checks}")
        return 1

    def resume(self) -> str:
        if self.state != "DISCARDED":
            return "transaction_not_found" if self.state == "PREPARED" else "transaction_ended"
        self.state, self.checks, self.exhausted = "PREPARED", 0, False
        self.history.append("RESUME 0")
        return "PREPARED"

    @property
    def stored(self) -> tuple[str | None, list[str] | None, int]:
        half = None if self.state in STATES.values() else f"{self.state} {self.checks}"
        return half, self.history or None, int(self.state == "COMMITTED")


class Deciding(Scenario):
    """Some of: `end` (the producer's commit), `check` (undecided), `discard`, `limit` (a discard by another process),
    `resolve` (an operator's rollback), `resume`.
    """

    inner = OWN_STEPS

    def __init__(self, watch: psycopg.Connection[Any], names: Sequence[str], state: str = "PREPARED") -> None:
        self._watch, self._names, self._state = watch, names, state
        self._first: uuid.UUID | None = None
        self.id = uuid.UUID(int=0)

    async def begin(self) -> Mapping[str, Work]:
        if self._first is None:
            # The first entry of a queue in a segment is one of the stepwise writer's.
            await writer.run(Send(Message(topic=TOPIC, body="order", queue_id=0)))
            given = BeginTransaction(
                topic=TOPIC, body="order", producer_group=GROUP, check_immunity_seconds=600, queue_id=0
            )
            self._first = (await writer.run(Begin(given))).transaction_id
            await topics.own(topics.DISCARDED, queues=1)
        self.id = uuid.uuid4()
        discarded_at = datetime.now(UTC) if self._state == "DISCARDED" else None
        self._watch.execute(COPY.encode(), {"id": self.id, "first": self._first, "discarded_at": discarded_at})
        works = {
            "end": self._end, "resolve": self._resolve, "resume": self._resume, "check": self._check,
            "discard": self._discard, "limit": self._discard,
        }  # fmt: skip
        return {name: of_stage(works[name]) for name in self._names}

    async def _end(self, connection: StageConnection) -> object:
        return _state(await written(connection, End(self.id, "COMMIT", "producer")))

    async def _resolve(self, connection: StageConnection) -> object:
        return _state(await written(connection, End(self.id, "ROLLBACK", "operator", discarded=True)))

    async def _resume(self, connection: StageConnection) -> object:
        return _state(await written(connection, Resume(self.id, "again")))

    async def _discard(self, connection: StageConnection) -> object:
        return await written(connection, Discard([self.id], "no decision"))

    async def _check(self, connection: StageConnection) -> object:
        attempt = Attempt(self.id, None, None, counted=True, answer=None, status=200, latency_ms=1, reason="unknown",
                          wait_seconds=60)  # fmt: skip
        return await written(connection, Postponement(attempt))

    async def outcome(self, answers: Mapping[str, object]) -> object:
        row = self._watch.execute(LOOK.encode(), {"id": self.id}).fetchone()
        return dict(answers), row

    def serial(self, order: Sequence[str]) -> object:
        model = Model(self._state)
        calls = {
            "end": lambda: model.end("COMMIT"),
            "resolve": lambda: model.end("ROLLBACK", discarded=True),
            "check": model.check,
            "discard": model.discard,
            "limit": model.discard,
            "resume": model.resume,
        }
        answers = {name: calls[name]() for name in order}
        return answers, model.stored


def _state(answer: object) -> object:
    return getattr(answer, "state", kind(answer))
