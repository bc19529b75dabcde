"""One id that a producer begins twice, as after a lost answer, while its end is on the way."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from scheduling.sending.send import Send
from store.commit import writer
from store.messages import Message
from store.process import runtime
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.permutations.writing import kind, written
from transactions.operations.begin import Begin
from transactions.operations.end import End
from transactions.operations.half_queues import HalfQueues
from transactions.operations.validation import BeginTransaction

GROUP, TOPIC = "shop", "parcels"
LOOK = """
SELECT
    (SELECT count(*) FROM commit_log AS m WHERE m.transaction_id = %(id)s),
    (SELECT count(*) FROM half_message AS h WHERE h.transaction_id = %(id)s),
    (SELECT count(*) FROM operation AS o WHERE o.transaction_id = %(id)s),
    (SELECT count(*) FROM consume_queue AS c INNER JOIN commit_log AS m USING (log_offset)
     WHERE m.transaction_id = %(id)s)
"""
OWN_STEPS = (
    "^INSERT INTO (operation|consume_queue|half_message)",
    "^SELECT pg_advisory_xact_lock",
    "^SELECT g.id",
    "^ROLLBACK",
)


class Beginning(Scenario):
    """Some of: `begin`, `again` (the same request) and `end` (its commit); the transaction may be begun already.

    `in_steps`: the begins are written as where a batch has left them out.
    """

    inner = OWN_STEPS

    def __init__(
        self, watch: psycopg.Connection[Any], names: Sequence[str], *, is_begun: bool = False, in_steps: bool = False
    ) -> None:
        self._watch, self._names, self._is_begun, self._in_steps = watch, names, is_begun, in_steps
        self.id = uuid.UUID(int=0)
        self._is_ready = False

    async def begin(self) -> Mapping[str, Work]:
        if not self._is_ready:
            await writer.run(Send(Message(topic=TOPIC, body="parcel", queue_id=0)))
            await writer.run(Begin(self._request()))
            self._is_ready = True
        self.id = uuid.uuid4()
        if self._is_begun:
            await writer.run(Begin(self._request()))
        return {name: of_stage(self._end if name == "end" else await self._begin()) for name in self._names}

    def _request(self) -> BeginTransaction:
        return BeginTransaction(
            topic=TOPIC, body="parcel", producer_group=GROUP, queue_id=0, transaction_id=self.id,
            check_immunity_seconds=600,
        )  # fmt: skip

    async def _begin(self) -> Any:
        operation = Begin(self._request())
        if not operation.ready():
            await operation.complete()
        if self._in_steps:
            operation.is_plain = False

        async def work(connection: StageConnection) -> object:
            begun: Any = await written(connection, operation)
            is_known = getattr(begun, "duplicate", None) is True
            return kind(begun) if not hasattr(begun, "state") else f"known {begun.state}" if is_known else "begun"

        return work

    async def _end(self, connection: StageConnection) -> object:
        # As in a process that has not begun it.
        runtime.control(HalfQueues).take(self.id.bytes)
        ended: Any = await written(connection, End(self.id, "COMMIT", "producer"))
        return getattr(ended, "state", kind(ended))

    async def outcome(self, answers: Mapping[str, object]) -> object:
        return dict(answers), self._watch.execute(LOOK.encode(), {"id": self.id}).fetchone()

    def serial(self, order: Sequence[str]) -> object:
        state = "PREPARED" if self._is_begun else ""
        answers: dict[str, str] = {}
        for name in order:
            if name == "end":
                state = "COMMITTED" if state else ""
                answers[name] = state or "transaction_not_found"
            else:
                answers[name] = f"known {state}" if state else "begun"
                state = state or "PREPARED"
        ended = int(state == "COMMITTED")
        return answers, (int(bool(state)), int(state == "PREPARED"), ended, ended)
