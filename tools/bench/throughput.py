"""Rates of producers, by case: each round measures the yardstick, this checkout's broker, and another checkout's."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import psycopg
from mqbroker_client.core.ids import uuid7

from tools.bench import broker, delivery, limit, load, outboxes
from tools.bench.broker import Broker
from tools.bench.checkout import OURS, Checkout
from tools.bench.figures import Figures, ratio
from tools.bench.limit import Limit
from tools.bench.load import Connection, Measured
from tools.bench.machine import Database, require_durability
from tools.bench.outboxes import INSERT, Rows
from tools.bench.report import Report

BODY = "x" * 1000
GROUP = "bench"
PER_BULK = 100
PER_MESSAGE_BATCH = 16
WARM_UP_SECONDS = 2.0
OTHER = "beside"
# One web process: other numbers cannot be compared, because some versions do not support them.
ALONE = "1"

SEND = msgspec.json.encode({"topic": "sends", "body": BODY})
MESSAGE_BATCH = msgspec.json.encode({"topic": "batches", "messages": [{"body": "x" * 128}] * PER_MESSAGE_BATCH})
END = msgspec.json.encode({"producer_group": GROUP, "state": "COMMIT"})


def half(transaction_id: str) -> dict[str, str]:
    """The fields of a transaction's half message."""
    return {"topic": "transactions", "body": BODY, "producer_group": GROUP, "transaction_id": transaction_id}


async def send(connection: Connection, number: int) -> bool:
    """One plain send of 1 kB."""
    status, _ = await connection.ask("POST", "/v1/messages", SEND)
    return status == 201


async def transact(connection: Connection, number: int) -> bool:
    """A half message of 1 kB and its commit: two requests, with an id that increases with time, as the client makes it.

    Random ids would touch other pages of three indexes each time. PostgreSQL writes these pages completely to the WAL
    after a checkpoint, so the figures would depend on the time of the checkpoint.
    """
    transaction_id = str(uuid7())
    begun, _ = await connection.ask("POST", "/v1/transactions", msgspec.json.encode(half(transaction_id)))
    ended, _ = await connection.ask("POST", f"/v1/transactions/{transaction_id}/end", END)
    return begun == 201 and ended == 200


async def transact_in_bulk(connection: Connection, number: int) -> bool:
    """A hundred transactions in two requests: their half messages, then their commits."""
    ids = [str(uuid7()) for _ in range(PER_BULK)]
    halves: list[dict[str, str]] = [{"op": "half", **half(id_)} for id_ in ids]
    ends = [{"op": "end", "transaction_id": id_, "producer_group": GROUP, "state": "COMMIT"} for id_ in ids]
    return await _bulk(connection, halves, b'"status":201') and await _bulk(connection, ends, b'"status":200')


async def _bulk(connection: Connection, operations: list[dict[str, str]], done: bytes) -> bool:
    _, answer = await connection.ask("POST", "/v1/bulk", msgspec.json.encode({"operations": operations}))
    return answer.count(done) == PER_BULK


async def send_batch(connection: Connection, number: int) -> bool:
    """Sixteen messages of 128 B in one request."""
    status, _ = await connection.ask("POST", "/v1/messages/batch", MESSAGE_BATCH)
    return status == 201


@dataclass(frozen=True)
class Case:
    """A load: its number of connections, its operations per round, and the yardstick's kind of work
    to compare it with.
    """

    name: str
    round: load.Round
    connections: int
    kind: str
    operations: int = 1

    def over(self, running: Broker, seconds: float) -> Measured:
        """Runs the load. Returns its measurements."""
        return load.run(load.closed_loop(running.port, self.connections, None, self.round, seconds))


@dataclass(frozen=True)
class Arrival:
    """A case with a steady load whose messages a waiting consumer receives; its figure is the latency."""

    name: str = f"send to received at {delivery.PER_SECOND}/s"
    operations: int = 1
    kind: str | None = None

    def over(self, running: Broker, seconds: float) -> Measured:
        """Runs the load. Returns the latencies from the start of each send to its arrival."""
        return Measured(seconds, load.run(delivery.end_to_end(running.port, seconds)))


AnyCase = Case | Arrival | Rows
CASES: tuple[AnyCase, ...] = (
    Case("transactions, 64 connections", transact, 64, "transactions"),
    Case("transactions, 128 connections", transact, 128, "transactions"),
    Case("transactions, one caller", transact, 1, "transactions"),
    Case("sends, 64 connections", send, 64, "sends"),
    Case("sends, 128 connections", send, 128, "sends"),
    Case("transactions by bulk, 100 to a request", transact_in_bulk, 8, "transactions", PER_BULK),
    Case("batches of 16 messages of 128 B", send_batch, 64, "batches", PER_MESSAGE_BATCH),
    Arrival(),
    *outboxes.CASES,
)


def measure(case: AnyCase, running: Broker, database: Database, seconds: float) -> Figures:
    """One round of a case on one broker, its costs per operation."""
    with database.used() as used:
        web, own = running.cpu_seconds()["web"], os.times()
        measured = case.over(running, seconds)
        web, now = running.cpu_seconds()["web"] - web, os.times()
    done = max(1, len(measured.latencies) * case.operations)
    return Figures(
        per_second=done / measured.seconds,
        p50_ms=measured.percentile_ms(50),
        p99_ms=measured.percentile_ms(99),
        web_cpu_us=web * 1e6 / done,
        postgres_cpu_us=used.cpu_seconds * 1e6 / done,
        wal_bytes=used.wal_bytes / done,
        load_cpu_us=(now.user + now.system - own.user - own.system) * 1e6 / done,
        refused=measured.refused,
    )


def main(report: Report) -> None:
    """Prints a table for each case, a row for each side, and the ratios within the rounds."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        for name, value in require_durability(connection).items():
            report.fact(name, value)
        report.fact("machine", f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        sides = {"ours": Checkout(OURS)}
        if report.options.beside is not None:
            sides[OTHER] = Checkout(report.options.beside)
        for side, checkout in sides.items():
            report.fact(side, checkout.name)
        for case in chosen(report.options.cases):
            _case(report, case, sides, Database(connection))
            report.ended(case.name)


def chosen(words: Sequence[str]) -> list[AnyCase]:
    """The cases whose names contain one of these words; without words all cases."""
    return [case for case in CASES if not words or any(word in case.name for word in words)]


def _case(report: Report, case: AnyCase, sides: dict[str, Checkout], database: Database) -> None:
    """Runs the rounds of a case, on new brokers and a new yardstick.

    Rows of an earlier case would influence the result: autovacuum would process them a minute later, and then short
    messages would fill the gaps that long messages left in each page, at twice PostgreSQL's CPU.
    """
    with contextlib.ExitStack() as stack:
        brokers = {
            side: stack.enter_context(
                broker.running(ALONE if side == OTHER else report.options.processes, worker=False, checkout=checkout)
            )
            for side, checkout in sides.items()
        }
        _rounds(report, case, brokers, database, stack.enter_context(limit.ready()))


def _rounds(report: Report, case: AnyCase, brokers: dict[str, Broker], database: Database, yardstick: Limit) -> None:
    for running in brokers.values():
        case.over(running, min(WARM_UP_SECONDS, report.options.seconds))
    for number in range(report.options.rounds):
        report.progress(f"{case.name}, round {number + 1} of {report.options.rounds}")
        best = _limit(report, case, yardstick, brokers["ours"])
        # The side that is measured first differs from round to round, because the machine's speed drifts.
        order = list(brokers) if number % 2 else list(reversed(brokers))
        found = {side: measure(case, brokers[side], database, report.options.seconds) for side in order}
        for figures in found.values():
            figures.of_limit = ratio(figures.per_second, best.per_second if best else None)
        if OTHER in found:
            found["ours"].of_other = _beside(case, found["ours"], found[OTHER])
            found["ours"].cpu_of_other = ratio(found[OTHER].server_cpu_us, found["ours"].server_cpu_us)
        for side in brokers:
            report.measured(case.name, side, found[side])


def _limit(report: Report, case: AnyCase, yardstick: Limit, ours: Broker) -> Figures | None:
    if case.kind is None:
        return None
    seconds = min(2.0, report.options.seconds)
    if isinstance(case, Rows):
        figures = Figures(case.over(ours, seconds, INSERT).per_second)
    else:
        figures = yardstick.measure(case.kind, seconds)
    report.measured(case.name, "limit", figures)
    return figures


def _beside(case: AnyCase, ours: Figures, other: Figures) -> float | None:
    """Our rate divided by the other side's; with a fixed rate, the other's median latency divided by ours."""
    if case.kind is not None:
        return ratio(ours.per_second, other.per_second)
    return ratio(other.p50_ms, ours.p50_ms)
