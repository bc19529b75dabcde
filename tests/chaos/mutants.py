"""Brokers that promise less: each has one flaw, made on purpose in the text of a module or a statement."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.broker import databases
from tests.broker.running import RunningBroker


@dataclass(frozen=True)
class Mutant:
    """The changes, each a module or `….sql`, its text and what replaces it; and what is taken from the database first,
    because it stands behind the same promise."""

    changes: tuple[tuple[str, str, str], ...]
    statements: tuple[str, ...] = ()


def prepare(database_url: str, folder: Path) -> None:
    """Makes the tables and the API key in an empty database."""
    RunningBroker(folder, database_url, os.environ["REDIS_URL"], tasks=False).prepare()


@contextmanager
def broker(
    mutant: Mutant | None, database_url: str, folder: Path, *, webs: int = 1, tasks: bool = False
) -> Iterator[RunningBroker]:
    """A running broker with these flaws, or without any, on a prepared database."""
    running = RunningBroker(folder, database_url, os.environ["REDIS_URL"], webs=webs, tasks=tasks)
    if mutant is not None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            for statement in mutant.statements:
                connection.execute(statement.encode())
        give(mutant, running)
    with running:
        yield running


def give(mutant: Mutant, running: RunningBroker) -> None:
    """Has the processes of a broker, and the commands that are run beside it, read the changed texts."""
    path = os.pathsep.join([str(Path(__file__).parent / "mutant"), running.environment["PYTHONPATH"]])
    for environment in (running.environment, *(child.environment for child in running.children)):
        environment.update(PYTHONPATH=path, MUTANT=json.dumps(mutant.changes))


@contextmanager
def copy(
    mutant: Mutant | None, prepared: str, folder: Path, *, webs: int = 1, tasks: bool = False
) -> Iterator[RunningBroker]:
    """The same on a copy of a prepared database."""
    with databases.copied(prepared) as url, broker(mutant, url, folder, webs=webs, tasks=tasks) as running:
        yield running


DECIDES_ONCE = "DROP INDEX operation_decides_once"

ASYNCHRONOUS = Mutant(
    (
        ("store.db.conninfo", '"synchronous_commit": "on"', '"synchronous_commit": "off"'),
        ("store.db.guards", 'or state.synchronous_commit != "on"', ""),
    )
)
# The answers are flushed without the sync that commits, which follows 0.2 s later.
ANSWERS_BEFORE_COMMIT = Mutant(
    (
        (
            "store.db.pipeline",
            "            self._pgconn.pipeline_sync()\n            self._under_way.append(exchange)\n",
            "            self._pgconn.send_flush_request()\n            self._under_way.append(exchange)\n"
            "            self._loop.call_later(0.2, lambda: (self._pgconn.pipeline_sync(), self._flush()))\n",
        ),
        # Between the answers and the sync nothing is there to be read.
        (
            "store.db.pipeline",
            "            result = self._pgconn.get_result()\n            if result is not None:\n"
            "                self._take",
            "            result = self._pgconn.get_result() or (\n"
            "                None if self._pgconn.is_busy() else self._pgconn.get_result()\n"
            "            )\n"
            "            if result is None and self._pgconn.status != pq.ConnStatus.BAD:\n"
            "                break\n"
            "            elif result is not None:\n"
            "                self._take",
        ),
        ("store.db.pipeline", "            else:\n                exchange.done(exchange.results)\n", ""),
        (
            "store.db.pipeline",
            "exchange.results[exchange.statements.popleft()] = result\n",
            "exchange.results[exchange.statements.popleft()] = result\n"
            "            if not exchange.statements and not exchange.prepares and exchange.failure is None:\n"
            "                exchange.done(exchange.results)\n",
        ),
        ("store.commit.pipelined_writer", "any(one.ordered for one in self._under_way)", "bool(self._under_way)"),
        (
            "store.commit.pipelined_writer",
            "        self._under_way.remove(batch)\n",
            "        asyncio.get_running_loop().call_later(\n"
            "            0.3, lambda: (self._under_way.remove(batch), self._schedule())\n"
            "        )\n",
        ),
    )
)
# The row is read without a lock and found pending; what its delete finds, a moment later, is not looked at.
ENDED = (
    "        h.transaction_id, h.producer_group_id, h.check_times, h.stored_at, h.log_segment, h.log_offset, "
    "h.message_id,\n"
    "        h.topic_id, h.queue_id, h.tags_code,\n"
    "        width_bucket(h.transaction_id, %(transaction_id)b::uuid []) AS number,\n"
    "        array_position((SELECT t.queues FROM tail AS t), h.topic_id::bigint << 32 | h.queue_id) AS queue\n"
)
READS_THEN_WRITES = Mutant(
    (
        ("transactions.operations.packed", "is_one = len(ends) == 1", "is_one = False"),
        ("end_free_halves.sql", "WHEN h.xmax = 0 THEN true", "WHEN true THEN true"),
        (
            "end_free_halves.sql",
            "ended AS (\n    DELETE FROM half_message AS h\n    WHERE\n",
            f"ended AS (\n    SELECT\n{ENDED}    FROM half_message AS h\n"
            "    WHERE\n        (SELECT pg_sleep(0.1) IS NOT NULL) AND\n",
        ),
        (
            "end_free_halves.sql",
            f"    RETURNING\n{ENDED}),\n",
            "), gone AS (DELETE FROM half_message AS h USING ended AS e WHERE h.transaction_id = e.transaction_id),\n",
        ),
    ),
    (DECIDES_ONCE,),
)
# A queue is not locked, and its next offset comes from a sequence; the commit comes a moment later.
OFFSETS_BY_SEQUENCE = Mutant(
    (
        ("join_and_lock.sql", "ELSE pg_advisory_xact_lock(w.topic_id, w.queue_id) IS NOT NULL", "ELSE true"),
        (
            "join_and_lock_one.sql",
            "pg_advisory_xact_lock(%(topic_id)b::integer, %(queue_id)b::integer) IS NOT NULL",
            "true",
        ),
        (
            "send_messages.sql",
            "(SELECT t.offsets FROM tail AS t)[g.queue] + g.rank\n"
            "            - coalesce((SELECT nullif(current_setting('mq.skipped', true), '')::bigint [])[g.request], 0)",
            "nextval('mutant_offset')",
        ),
        (
            "send_messages.sql",
            "now() AS stored_at",
            "now() + (SELECT interval '0' FROM pg_sleep(random() * 0.05)) AS stored_at",
        ),
    ),
    ("CREATE SEQUENCE mutant_offset",),
)
# What a check is answered after the decision is taken for a decision, too.
TAKES_LATE_ANSWERS = Mutant(
    (
        (
            "transactions.operations.end",
            "        for one in operations:\n            if (half := halves.get(one.transaction_id)) is not None:\n",
            "        for one in operations:\n"
            "            if one.transaction_id not in halves and one.attempt is not None:\n"
            "                asked = {'transaction_ids': [one.transaction_id]}\n"
            "                row = (await batch.read(judging.FIND_TRANSACTIONS, asked))[0]\n"
            "                halves[one.transaction_id] = DeletedHalf(\n"
            "                    row.transaction_id, row.producer_group_id, row.stored_at, row.check_times,\n"
            "                    row.log_segment, row.log_offsets, row.message_ids, row.topic_ids, row.queue_ids,\n"
            "                    [0] * len(row.message_ids), None, False,\n"
            "                )\n"
            "        for one in operations:\n            if (half := halves.get(one.transaction_id)) is not None:\n",
        ),
    ),
    (DECIDES_ONCE,),
)
# A connection is compared with the newest map that the process knows, not with the one that led an operation to it.
NEWEST_MAP = Mutant(
    (
        ("store.commit.operation", "one.version is not None and one.version < version", "False"),
        ("store.db.routing", "        if known.epochs.get(cell, 0) != epoch:\n            raise\n", ""),
        (
            "store.db.fences",
            "CHECK (topic_id <> ALL ({}::integer[]))",
            "CHECK (topic_id <> ALL ({}::integer[]) OR true)",
        ),
    )
)
