"""Producers that begin and end transactions while others read: as the broker does it, in SQL of their own."""

import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from mqbroker_client.core.ids import uuid7

from store.segments.log import APPENDERS_LOCK

Connection = psycopg.Connection[Any]

# A loaded machine may keep a thread from its first transaction for so long.
BEGUN_SECONDS = 30

JOIN = "SELECT pg_advisory_xact_lock_shared(%s)"
STORE = """
INSERT INTO commit_log (
    segment_id, log_offset, stored_at, topic_id, queue_id, message_id, transaction_id, producer_group_id, body,
    body_form
)
VALUES (1, nextval('commit_log_offset'), now(), 1, 0, %(message_id)s, %(id)s, 1, 'a body', 'text')
RETURNING log_offset
"""
PREPARE = """
INSERT INTO half_message (
    transaction_id, producer_group_id, stored_at, immunity_seconds, next_check_at, check_times, exhausted, log_segment,
    log_offset, message_id, topic_id, queue_id
)
VALUES (%(id)s, 1, now(), 6, now(), 0, false, 1, %(offset)s, %(message_id)s, 1, 0)
"""
DECIDE = "DELETE FROM half_message WHERE transaction_id = %(id)s RETURNING log_offset, message_id"
RECORD = """
INSERT INTO operation (
    segment_id, operation_id, transaction_id, producer_group_id, decision, decided_by, decided_at, check_times,
    stored_at, log_segment, log_offset, message_id, topic_id, queue_id, queue_offset
)
VALUES (
    1, nextval('operation_id'), %(id)s, 1, %(decision)s, 'producer', now(), 0,
    now(), 1, %(offset)s, %(message_id)s, 1, 0, %(queue_offset)s
)
"""
LOCK_QUEUE = "SELECT pg_advisory_xact_lock(1, 0)"
ENQUEUE = """
INSERT INTO consume_queue (
    segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, reconsume_times, entered_at
)
SELECT 1, 1, 0, coalesce(max(queue_offset) + 1, 0), 1, %(offset)s, 0, 0, now()
FROM consume_queue
WHERE topic_id = 1 AND queue_id = 0
RETURNING queue_offset
"""


def begin(connection: Connection) -> uuid.UUID:
    """Stores a half; the transaction of the database stays open."""
    connection.execute(JOIN, (APPENDERS_LOCK,))
    ids = {"id": uuid7(), "message_id": uuid7()}
    [(offset,)] = connection.execute(STORE, ids).fetchall()
    connection.execute(PREPARE, {**ids, "offset": offset})
    return ids["id"]


def end(connection: Connection, transaction_id: uuid.UUID, decision: str) -> None:
    """Ends a half; the transaction of the database stays open."""
    connection.execute(JOIN, (APPENDERS_LOCK,))
    [(offset, message_id)] = connection.execute(DECIDE, {"id": transaction_id}).fetchall()
    queue_offset = None
    if decision == "COMMIT":
        connection.execute(LOCK_QUEUE)
        [(queue_offset,)] = connection.execute(ENQUEUE, {"offset": offset}).fetchall()
    said = {"id": transaction_id, "decision": decision, "offset": offset, "message_id": message_id}
    connection.execute(RECORD, {**said, "queue_offset": queue_offset})


def live(connection: Connection, ended: int, undecided: int) -> None:
    """Ends some transactions and leaves others."""
    for number in range(ended):
        end(connection, begin(connection), "COMMIT" if number % 2 else "ROLLBACK")
    for _ in range(undecided):
        begin(connection)
    connection.commit()


@contextmanager
def at_work(database: str, threads: int) -> Iterator[None]:
    """So many producers at once, until the block ends; each leaves some transactions undecided for a while.

    Each has begun one when the block begins: what reads there would find nothing else on a busy machine.
    """
    over = threading.Event()
    begun = [threading.Event() for _ in range(threads)]
    producers = [threading.Thread(target=_produce, args=(database, over, *each)) for each in enumerate(begun)]
    for producer in producers:
        producer.start()
    try:
        assert all(each.wait(BEGUN_SECONDS) for each in begun)
        yield
    finally:
        over.set()
        for producer in producers:
            producer.join()


def _produce(database: str, over: threading.Event, seed: int, begun: threading.Event) -> None:
    chance = random.Random(seed)
    undecided: list[uuid.UUID] = []
    with psycopg.connect(database) as connection:
        # At a pace that leaves the export a processor.
        while not over.wait(0.002):
            undecided.append(begin(connection))
            connection.commit()
            begun.set()
            if len(undecided) > 5 or chance.random() < 0.7:
                end(connection, undecided.pop(chance.randrange(len(undecided))), chance.choice(("COMMIT", "ROLLBACK")))
                connection.commit()
