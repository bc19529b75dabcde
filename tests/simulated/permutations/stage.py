"""The stage: connections as the message path has them, whose steps the engine chooses, and a clock of their own."""

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from psycopg import pq
from psycopg.abc import PQGen
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq.abc import PGresult
from psycopg.rows import namedtuple_row
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from store.db.conninfo import conninfo
from store.db.pipeline import Call
from tests.simulated.permutations.sessions import Step, SteppingConnection, SteppingCursor, Work, is_idle

# What a step waits for is the engine's choice, however long a machine takes for the steps in between.
ENDLESS = b"SET lock_timeout = 0; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0"
LIMIT = re.compile(rb"lock_timeout = '\w+'")
BINARY = pq.Format.BINARY
WRITER = "mqbroker-writer"
# Functions that PostgreSQL finds before its own: the product's statements see the time of the stage.
VIRTUAL_TIME = """
CREATE SCHEMA virtual;
CREATE FUNCTION virtual.now() RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.now() + current_setting('virtual.begun')::interval $$;
CREATE FUNCTION virtual.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT pg_catalog.clock_timestamp() + current_setting('virtual.passed')::interval $$;
"""
SEARCH = b"SET search_path = virtual, public, pg_catalog; SET virtual.begun = '0 s'; SET virtual.passed = '0 s'"


class Clock:
    """The time that has passed on the stage, beside the server's own."""

    def __init__(self) -> None:
        self.seconds = 0.0


class StageCursor(SteppingCursor):
    """A cursor that waits for locks as long as the engine wants."""

    async def execute(self, query: Any, params: Any = None, **options: Any) -> "StageCursor":
        if isinstance(query, bytes):
            query = LIMIT.sub(b"lock_timeout = 0", query)
        if isinstance(params, Mapping) and "lock_timeout" in params:
            params = {**params, "lock_timeout": "0"}
        return await super().execute(query, params, **options)


class StageConnection(SteppingConnection):
    """A session of the stage; with a clock its transactions begin at the virtual time."""

    clock: Clock | None = None
    # That which its process believes to be the open one.
    segment_id = 1
    _begun_at = _passed = 0.0

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._handles: dict[bytes, bytes] = {}
        self._number = 0

    async def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:
        if self.is_stepping and self.clock is not None:
            gen = self._in_time(gen, self.clock)
        return await super().wait(gen, interval, timeout)

    def _in_time(self, gen: PQGen[Any], clock: Clock) -> PQGen[Any]:
        """The time of the transaction is that of its first step, that of the clock is the step's own."""
        begun = clock.seconds if is_idle(self) else self._begun_at
        if (begun, clock.seconds) != (self._begun_at, self._passed):
            self._begun_at, self._passed = begun, clock.seconds
            text = f"SELECT set_config('virtual.begun', '{begun} s', false), set_config('virtual.passed', "
            self.pgconn.send_query(f"{text}'{clock.seconds} s', false)".encode())
            yield from execute(self.pgconn)
        return (yield from gen)

    async def rollback(self) -> None:
        await super().rollback()
        # psycopg has the server forget all of them.
        self._handles.clear()

    async def call(self, call: Call) -> PGresult:
        """The answer to one statement of a pipelined batch, whose first one begins the transaction."""
        async with self.lock:
            self.text = call.statement.numbered
            result: PGresult = await self.wait(self._called(call))
        return result

    def _called(self, call: Call) -> PQGen[PGresult]:
        statement, parameters = call
        if is_idle(self):
            self.pgconn.send_query(b"BEGIN")
            yield from execute(self.pgconn)
        if (name := self._handles.get(statement.numbered)) is None:
            self._number += 1
            name = self._handles[statement.numbered] = b"stage_%d" % self._number
            self.pgconn.send_prepare(name, statement.numbered)
            yield from execute(self.pgconn)
        values = [parameters[name] for name in statement.parameters]
        self.pgconn.send_query_prepared(name, values, [BINARY] * len(values), BINARY)
        result: PGresult
        [result] = yield from execute(self.pgconn)
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        return result


async def connected(clock: Clock | None = None, application: str = WRITER) -> StageConnection:
    """A connection as the message path's, which waits for locks without an end."""
    connection = await StageConnection.connect(conninfo(application), autocommit=True, row_factory=namedtuple_row)
    connection.cursor_factory = StageCursor
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.prepare_threshold = 0
    await connection.execute(ENDLESS, prepare=False)
    if clock is not None:
        await connection.execute(SEARCH, prepare=False)
        connection.clock = clock
    return connection


def tick(clock: Clock, seconds: float) -> Work:
    """A session of one step, by which time passes."""

    def passing() -> PQGen[None]:
        clock.seconds += seconds
        return
        yield

    async def work(_: SteppingConnection) -> None:
        await Step(passing(), b"time passes")

    return work


def of_stage(work: Callable[[StageConnection], Coroutine[Any, Any, object]]) -> Work:
    """A session's work as the engine takes it."""

    async def done(connection: SteppingConnection) -> object:
        assert isinstance(connection, StageConnection)
        return await work(connection)

    return done
