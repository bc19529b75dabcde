"""The yardstick: the rate of PostgreSQL itself, by raw SQL on one connection, without code of the broker.

It writes the rows that any broker needs: a log, entries with offsets without gaps, half messages, operations, and the
indexes that find them. 200 requests are one durable transaction and one libpq pipeline, so that no statement waits for
an earlier answer. The figures depend on the machine, so benchmarks print the broker's ratio to them.
"""

import contextlib
import os
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import psycopg
from psycopg import pq

from tools.bench import broker, machine
from tools.bench.figures import Figures
from tools.bench.report import Cases, Report
from tools.bench.turns import in_turns

PER_BATCH = 200
QUEUES = 4
MESSAGES = 16
BODY, SMALL_BODY = b"x" * 1000, b"x" * 128

SCHEMA = """
CREATE SEQUENCE log_offset;
CREATE TABLE log (
    log_offset bigint PRIMARY KEY, message_id uuid UNIQUE NOT NULL, transaction_id uuid, topic_id integer NOT NULL,
    queue_id integer NOT NULL, stored_at timestamptz NOT NULL, body bytea NOT NULL
);
CREATE TABLE entry (
    topic_id integer, queue_id integer, queue_offset bigint, log_offset bigint NOT NULL, tags_code bigint NOT NULL,
    PRIMARY KEY (topic_id, queue_id, queue_offset)
);
CREATE TABLE half (
    transaction_id uuid PRIMARY KEY, producer_group_id integer NOT NULL, next_check_at timestamptz NOT NULL,
    log_offset bigint NOT NULL, queue_id integer NOT NULL
);
CREATE INDEX half_due ON half (producer_group_id, next_check_at);
CREATE TABLE operation (
    transaction_id uuid PRIMARY KEY, decision text NOT NULL, decided_at timestamptz NOT NULL,
    log_offset bigint NOT NULL, queue_offset bigint NOT NULL
);
"""
# A separate statement before the one that reads the ends of the queues, so that its snapshot is later than the locks.
LOCK = "SELECT pg_advisory_xact_lock(1, q) FROM generate_series(0, 3) AS q"
TAIL = """
    SELECT q AS queue_id, coalesce(
        (SELECT queue_offset FROM entry WHERE topic_id = 1 AND queue_id = q ORDER BY queue_offset DESC LIMIT 1), -1
    ) AS queue_offset
    FROM generate_series(0, 3) AS q
"""
STORED = """
    INSERT INTO log
    SELECT nextval('log_offset'), g.message_id, {transaction_id}, 1, g.queue_id, now(), g.body
    FROM unnest($1::uuid [], $2::integer [], $3::bytea []) AS g (message_id, queue_id, body)
    RETURNING log_offset, message_id, queue_id
"""
ENTERED = """
    INSERT INTO entry
    SELECT
        1, m.queue_id, t.queue_offset + row_number() OVER (PARTITION BY m.queue_id ORDER BY m.log_offset),
        m.log_offset, 0
    FROM {messages} AS m INNER JOIN tail AS t USING (queue_id)
    RETURNING log_offset, queue_offset
"""
SEND = f"""
WITH tail AS MATERIALIZED ({TAIL}), stored AS ({STORED.format(transaction_id="NULL")})
{ENTERED.format(messages="stored")}
"""
HALF = f"""
WITH stored AS ({STORED.format(transaction_id="g.message_id")})
INSERT INTO half SELECT message_id, 1, now() + interval '6 s', log_offset, queue_id FROM stored RETURNING log_offset
"""
END = f"""
WITH tail AS MATERIALIZED ({TAIL}),
ended AS (DELETE FROM half WHERE transaction_id = any($1::uuid []) RETURNING transaction_id, log_offset, queue_id),
entered AS ({ENTERED.format(messages="ended")})
INSERT INTO operation
SELECT ended.transaction_id, 'COMMIT', now(), entered.log_offset, entered.queue_offset
FROM ended INNER JOIN entered USING (log_offset)
RETURNING transaction_id, queue_offset
"""
STATEMENTS = {b"lock": LOCK, b"send": SEND, b"half": HALF, b"end": END}
# PostgreSQL's type ids of array elements, for arrays in binary format.
UUID, INTEGER, BYTES = 2950, 23, 17

Call = tuple[bytes, list[bytes]]


@dataclass
class Pipeline:
    """A connection that sends statements without waiting for answers; a sync ends each transaction."""

    connection: pq.abc.PGconn
    unanswered: int = 0

    @classmethod
    def open(cls, url: str) -> "Pipeline":
        connection = pq.PGconn.connect(url.encode())
        for name, text in STATEMENTS.items():
            _require(connection.prepare(name, text.encode()), pq.ExecStatus.COMMAND_OK)
        connection.enter_pipeline_mode()
        return cls(connection)

    def send(self, calls: list[Call]) -> None:
        """Sends the statements of one transaction, including the commit."""
        for name, parameters in calls:
            self.connection.send_query_prepared(name, parameters, [1] * len(parameters), 1)
        self.connection.pipeline_sync()
        self.connection.flush()
        self.unanswered += 1

    def wait(self) -> None:
        """Reads the answers of the oldest transaction up to its commit. Raises RuntimeError when it failed."""
        while True:
            result = self.connection.get_result()
            if result is None:
                continue
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                self.unanswered -= 1
                return
            _require(result, pq.ExecStatus.TUPLES_OK)


def _require(result: pq.abc.PGresult, wanted: pq.ExecStatus) -> None:
    if result.status != wanted:
        raise RuntimeError(f"the yardstick's SQL failed: {result.error_message.decode()}")


def array(element: int, values: list[bytes]) -> bytes:
    """A one-dimensional array in PostgreSQL's binary format, from elements in binary format."""
    head = struct.pack("!iiIii", 1, 0, element, len(values), 1)
    return head + b"".join(chain.from_iterable((struct.pack("!i", len(value)), value) for value in values))


def uuids(count: int) -> bytes:
    """`count` new ids that increase with time, like the broker's ids: random ids become slower as the index grows."""
    now, given = struct.pack("!Q", time.time_ns()), os.urandom(8 * count)
    return array(UUID, [now + given[at : at + 8] for at in range(0, len(given), 8)])


def messages(count: int, body: bytes) -> list[bytes]:
    """The parameters that are the same for all batches: queues and bodies."""
    queues = [struct.pack("!i", number % QUEUES) for number in range(count)]
    return [array(INTEGER, queues), array(BYTES, [body] * count)]


def stores(count: int, body: bytes, pipeline: Pipeline) -> Callable[[], int]:
    """Sends of `count` messages. Returns a function that runs them and returns the number of operations."""
    same = messages(count, body)

    def batch() -> int:
        pipeline.send([(b"lock", []), (b"send", [uuids(count), *same])])
        return count

    return batch


def transactions(pipeline: Pipeline) -> Callable[[], int]:
    """200 half messages of 1 kB, then their commits in a second transaction. Returns the function, as `stores` does."""
    same = messages(PER_BATCH, BODY)

    def batch() -> int:
        ids = uuids(PER_BATCH)
        pipeline.send([(b"half", [ids, *same])])
        pipeline.send([(b"lock", []), (b"end", [ids])])
        return PER_BATCH

    return batch


KINDS: dict[str, Callable[[Pipeline], Callable[[], int]]] = {
    # 200 sends of 1 kB, and 200 batches of 16 messages of 128 B.
    "sends": partial(stores, PER_BATCH, BODY),
    "transactions": transactions,
    "batches": partial(stores, PER_BATCH * MESSAGES, SMALL_BODY),
}


class Limit:
    """The reference measurement (raw SQL), with its own database."""

    def __init__(self, pipeline: Pipeline, url: str) -> None:
        self._pipeline = pipeline
        self._url = url

    def measure(self, kind: str, seconds: float) -> Figures:
        """Runs one kind of work for this many seconds. Returns its figures."""
        batch, done = KINDS[kind](self._pipeline), 0
        with machine.used(self._url) as used:
            cpu, began = time.process_time(), time.perf_counter()
            while (took := time.perf_counter() - began) < seconds:
                done += batch()
                while self._pipeline.unanswered > 2:
                    self._pipeline.wait()
            while self._pipeline.unanswered:
                self._pipeline.wait()
            took, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Figures(
            per_second=done / took,
            load_cpu_us=cpu * 1e6 / done,
            postgres_cpu_us=used.cpu_seconds * 1e6 / done,
            wal_bytes=used.wal_bytes / done,
        )


@contextlib.contextmanager
def ready() -> Iterator[Limit]:
    """The yardstick after a warm-up; its database is dropped afterwards."""
    with broker.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA.encode())
        pipeline = Pipeline.open(url)
        try:
            limit = Limit(pipeline, url)
            for kind in KINDS:
                limit.measure(kind, 0.5)
            yield limit
        finally:
            pipeline.connection.finish()


def main(kind: str, report: Report) -> None:
    """Prints the limit for a kind of work: the median over the rounds."""
    with ready() as limit:
        in_turns(report, kind, {"the limit": partial(limit.measure, kind, report.options.seconds)})


CASES: Cases = {kind: partial(main, kind) for kind in KINDS}
