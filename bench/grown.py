"""A broker that has grown: rates and CPU of a full one beside those of an empty one, and under a pinned snapshot.

Both have the topics and groups that the load uses, and are measured in turns. The full one has besides `--messages`
stored messages, `--halves` pending half messages, `--topics`, and `--groups` that have read ten topics each. Then both
are loaded for `--pinned` seconds while a foreign session keeps a snapshot of the full one, and are measured once more.
"""

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import psycopg
from mqbroker_client.ids import uuid7

from bench import broker, lagging, load
from bench.broker import Broker
from bench.figures import Figures
from bench.load import Connection, Measured
from bench.machine import Database, require_durability
from bench.report import Report, Sizes

FILL = Path(__file__).with_name("grown.sql")
CONNECTIONS = 64
# The topics that producers send to, and the one that the group reads, which none of them sends to.
SENT = [f"topic-{number:04d}" for number in range(1, 9)]
READ = "topic-0009"
GROUPS = [f"group-{number:04d}" for number in range(1, 9)]
READER = "group-0001"
FEW = Sizes(messages=0, halves=0, topics=10, groups=8)
BODY = "x" * 1000
# What one round of the reader receives, for each of its seconds.
BACKLOG = 2_000
PER_BULK = 500
WARM_UP_SECONDS = 2.0
# Filling writes some 400 bytes for each message, and their indexes.
WITHOUT_TIMEOUT = "SET statement_timeout = 0"
EMPTY, FULL = "empty", "full"

SENDS = [msgspec.json.encode({"topic": topic, "body": BODY}) for topic in SENT]


def fill(database_url: str, sizes: Sizes) -> float:
    """Writes rows of these sizes into an empty broker's database; returns the seconds that it took."""
    began = time.perf_counter()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(WITHOUT_TIMEOUT)
        with connection.transaction(), psycopg.ClientCursor(connection) as cursor:
            for statement in FILL.read_text(encoding="utf-8").split(";\n\n"):
                cursor.execute(statement.encode(), asdict(sizes))
        connection.execute("VACUUM ANALYZE")
    return time.perf_counter() - began


async def send(connection: Connection, number: int) -> bool:
    """One plain send of 1 kB."""
    status, _ = await connection.ask("POST", "/v1/messages", SENDS[number % len(SENDS)])
    return status == 201


async def transact(connection: Connection, number: int) -> bool:
    """A half message of 1 kB and its commit, by an id in the order of time, as the client makes them."""
    return await _transact(connection, number, str(uuid7()))


async def transact_at_random(connection: Connection, number: int) -> bool:
    """The same by an id in no order: each goes to another page of two indexes."""
    return await _transact(connection, number, str(uuid.uuid4()))


async def _transact(connection: Connection, number: int, transaction_id: str) -> bool:
    group = GROUPS[number % len(GROUPS)]
    half = {"topic": SENT[number % len(SENT)], "body": BODY, "producer_group": group, "transaction_id": transaction_id}
    begun, _ = await connection.post("/v1/transactions", half)
    end = {"producer_group": group, "state": "COMMIT"}
    ended, _ = await connection.post(f"/v1/transactions/{transaction_id}/end", end)
    return begun == 201 and ended == 200


def sending(running: Broker, seconds: float) -> Measured:
    """Sends over many connections."""
    return load.run(load.closed_loop(running.port, CONNECTIONS, None, send, seconds))


def transacting(running: Broker, seconds: float) -> Measured:
    """Transactions over many connections."""
    return load.run(load.closed_loop(running.port, CONNECTIONS, None, transact, seconds))


def transacting_at_random(running: Broker, seconds: float) -> Measured:
    """Transactions of random ids over many connections."""
    return load.run(load.closed_loop(running.port, CONNECTIONS, None, transact_at_random, seconds))


def backlog(seconds: float) -> int:
    """What a round of so many seconds receives: whole bulks."""
    return max(1, int(BACKLOG * seconds) // PER_BULK) * PER_BULK


def provide(running: Broker, seconds: float) -> None:
    """A backlog for the reader."""

    async def one_bulk(connection: Connection, number: int) -> bool:
        message = {"op": "send", "topic": READ, "body": BODY}
        body = msgspec.json.encode({"operations": [message] * PER_BULK})
        _, answer = await connection.ask("POST", "/v1/bulk", body)
        return answer.count(b'"status":201') == PER_BULK

    # One bulk more than is received: no receive waits at its end.
    measured = load.run(load.closed_loop(running.port, 4, backlog(seconds) // PER_BULK + 1, one_bulk))
    if measured.refused:
        raise RuntimeError(f"{measured.refused} bulks were refused: there is nothing to receive")


def receiving(running: Broker, seconds: float) -> Measured:
    """The group receives and acks its backlog, however long that takes."""
    count = backlog(seconds)
    per_second = load.run(lagging.consumed_per_second(running.port, READER, READ, count))
    return Measured(count / per_second, [0.0] * count)


@dataclass(frozen=True)
class Case:
    """A load, and what has to be there before it."""

    name: str
    over: Callable[[Broker, float], Measured]
    before: Callable[[Broker, float], None] = lambda running, seconds: None


CASES = (
    Case("transactions, 64 connections", transacting),
    Case("transactions of random ids, 64 connections", transacting_at_random),
    Case("sends, 64 connections", sending),
    Case("received and acked, 32 at a time", receiving, provide),
)


def measure(case: Case, running: Broker, database: Database, seconds: float) -> Figures:
    """One round of a case."""
    case.before(running, seconds)
    with database.used() as used:
        web = running.cpu_seconds()["web"]
        measured = case.over(running, seconds)
        web = running.cpu_seconds()["web"] - web
    done = max(1, len(measured.latencies))
    return Figures(
        per_second=done / measured.seconds,
        web_cpu_us=web * 1e6 / done,
        postgres_cpu_us=used.cpu_seconds * 1e6 / done,
        wal_bytes=used.wal_bytes / done,
        refused=measured.refused,
    )


def main(report: Report) -> None:
    """Prints a table of both brokers, as they are and with the snapshot."""
    sizes = report.options.sizes
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(psycopg.connect(os.environ["DATABASE_URL"], autocommit=True))
        for name, value in require_durability(connection).items():
            report.fact(name, value)
        report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        report.fact("full", ", ".join(f"{size:,} {name}" for name, size in asdict(sizes).items()))
        sides = {EMPTY: FEW, FULL: sizes}
        brokers = {side: stack.enter_context(broker.running(worker=False)) for side in sides}
        for side, running in brokers.items():
            report.progress(f"the {side} broker is filled")
            report.line(f"{side}, filled", {"seconds": fill(running.database_url, sides[side])})
        database = Database(connection)
        _rounds(report, brokers, database, "")
        with lagging.pinned_snapshot(brokers[FULL]):
            for running in brokers.values():
                _age(report, running, report.options.pinned)
            _rounds(
                report, brokers, database, f", {report.options.pinned:g} s of load under a snapshot of the full one"
            )
    report.table()


def _age(report: Report, running: Broker, seconds: float) -> None:
    """Loads a broker for so long, with a part of the time for each case."""
    for case in CASES:
        report.progress(f"{case.name}: under load for {seconds / len(CASES):.0f} s")
        until = time.monotonic() + seconds / len(CASES)
        while (left := until - time.monotonic()) > 0:
            case.before(running, left)
            case.over(running, left)


def _rounds(report: Report, brokers: Mapping[str, Broker], database: Database, state: str) -> None:
    warm_up = min(WARM_UP_SECONDS, report.options.seconds)
    for case in CASES:
        for running in brokers.values():
            case.before(running, warm_up)
            case.over(running, warm_up)
        for number in range(report.options.rounds):
            report.progress(f"{case.name}{state}: round {number + 1} of {report.options.rounds}")
            # The side that is measured first differs from round to round, because the machine's speed drifts.
            order = [EMPTY, FULL] if number % 2 else [FULL, EMPTY]
            found = {side: measure(case, brokers[side], database, report.options.seconds) for side in order}
            full, empty = found[FULL], found[EMPTY]
            full.of_other = _rate(full) / _rate(empty)
            full.cpu_of_other = _cpu_us(empty) / _cpu_us(full)
            for side in brokers:
                report.measured(case.name + state, side, found[side])


def _rate(figures: Figures) -> float:
    return figures.per_second or 0.0


def _cpu_us(figures: Figures) -> float:
    return (figures.web_cpu_us or 0.0) + (figures.postgres_cpu_us or 0.0)
