"""A half message that is ended while its topic leaves the database: what the copy has, and what is purged here."""

import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import psycopg

from scheduling.sending.send import Send
from store.commit import writer
from store.db import connections, fences
from store.messages import Message
from tests.simulated.permutations.deciding import COPY, LOOK
from tests.simulated.permutations.exploring import JOINS, Scenario
from tests.simulated.permutations.sessions import Work
from tests.simulated.permutations.stage import StageConnection, of_stage
from tests.simulated.permutations.writing import kind, written
from transactions.operations.begin import Begin
from transactions.operations.end import End
from transactions.operations.purges import PURGE_HALVES
from transactions.operations.validation import BeginTransaction

GROUP, TOPIC = "emigrants", "leaving"
OWN_STEPS = ("^INSERT INTO consume_queue", "^ALTER DATABASE", "pg_terminate_backend", "^ROLLBACK", "^SAVEPOINT")


class Splitting(Scenario):
    """`end`, the producer's commit by a session from before, and `move`, which follows `console.cells.moving`:

    the fence, the end of all sessions, what the standby has by then, the purge, the end of the fence.
    """

    inner = OWN_STEPS
    leading = (*JOINS, "^BEGIN OR COMMIT")
    renewed = ("end",)
    applications = MappingProxyType({"move": fences.MOVER})

    def __init__(self, watch: psycopg.Connection[Any]) -> None:
        self._watch = watch
        self._first: uuid.UUID | None = None
        self.id = uuid.UUID(int=0)
        self._topic = 0
        self._copied: Any = None

    async def begin(self) -> Mapping[str, Work]:
        if self._first is None:
            await writer.run(Send(Message(topic=TOPIC, body="letter", queue_id=0)))
            request = BeginTransaction(topic=TOPIC, body="letter", producer_group=GROUP, queue_id=0,
                                       check_immunity_seconds=600)  # fmt: skip
            self._first = (await writer.run(Begin(request))).transaction_id
            row = self._watch.execute("SELECT id FROM topic WHERE name = %s", (TOPIC,)).fetchone()
            self._topic = row[0] if row else 0
            # The purge takes all halves of the topic: the first one is kept in a table of its own.
            self._watch.execute("DROP TABLE IF EXISTS first_half")
            self._watch.execute("CREATE TABLE first_half AS TABLE half_message")
        self.id = uuid.uuid4()
        restored = "INSERT INTO half_message SELECT * FROM first_half WHERE transaction_id = %s ON CONFLICT DO NOTHING"
        self._watch.execute(restored, (self._first,))
        self._watch.execute(COPY.encode(), {"id": self.id, "first": self._first, "discarded_at": None})
        return {"end": of_stage(self._end), "move": of_stage(self._move)}

    async def _end(self, connection: StageConnection) -> object:
        try:
            answer: Any = await written(connection, End(self.id, "COMMIT", "producer"))
        except psycopg.OperationalError:
            return "outcome_unknown"
        return getattr(answer, "state", kind(answer))

    async def _move(self, connection: StageConnection) -> object:
        database = connection.info.dbname
        async with connection.transaction():
            [fence] = await connections.execute(connection, fences.FENCE_CELL, {"seconds": 60})
            await connection.execute(fences.close(database))
        pids = None
        while pids is None or pids:
            ousted = {"mover": fences.MOVER, "before": None, "pids": pids}
            pids = [one.pid for one in await connections.execute(connection, fences.OUST_SESSIONS, ousted)]
        self._copied = await (await connection.execute(LOOK.encode(), {"id": self.id})).fetchone()
        assert await connections.execute(connection, fences.HOLD_FENCE, {"epoch": fence.epoch})
        async with connection.transaction():
            await connections.execute(connection, fences.LIFT_FENCE, {"by_its_run": True})
            await connections.execute(connection, PURGE_HALVES, {"topics": [self._topic]})
            await connection.execute(fences.reopen(database))
        return "moved"

    async def outcome(self, answers: Mapping[str, object]) -> object:
        here = self._watch.execute(LOOK.encode(), {"id": self.id}).fetchone()
        assert here is not None
        half, operations, visible = here
        # What was decided here is decided in the copy, too, and nothing of it is left to be decided here.
        is_one = (operations, visible) == tuple(self._copied)[1:] and half is None
        is_told = answers["end"] != "COMMITTED" or operations is not None
        return "one decision, told as it is" if is_one and is_told else (dict(answers), self._copied, here)

    def serial(self, order: Sequence[str]) -> object:
        return "one decision, told as it is"
