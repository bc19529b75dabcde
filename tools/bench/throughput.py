"""Rates of producers, by case: each round measures raw SQL (the yardstick), this checkout's broker, and another's."""

import contextlib
from dataclasses import dataclass
from functools import partial

import msgspec
from mqbroker_client.core.ids import uuid7

from tools.bench import arrivals, broker, cells, client, limit, load, outboxes, rocketmq
from tools.bench.broker import Broker
from tools.bench.checkout import OTHER
from tools.bench.figures import Figures
from tools.bench.limit import Limit
from tools.bench.load import Connection, Measured
from tools.bench.outboxes import INSERT, Rows
from tools.bench.report import Cases, Report
from tools.bench.turns import LIMIT, by_latency, in_turns, measure

BODY = "x" * 1000
GROUP = "bench"
PER_BULK = 100
PER_MESSAGE_BATCH = 16
WARM_UP_SECONDS = 2.0
# One web process: other numbers cannot be compared, because some versions do not support them.
ALONE = "1"

SEND = msgspec.json.encode({"topic": "sends", "body": BODY})
MESSAGE_BATCH = msgspec.json.encode({"topic": "batches", "messages": [{"body": "x" * 128}] * PER_MESSAGE_BATCH})
END = msgspec.json.encode({"producer_group": GROUP, "state": "COMMIT"})


def half(transaction_id: str) -> dict[str, str]:
    """The fields of a transaction's half message."""
    return {"topic": "transactions", "body": BODY, "producer_group": GROUP, "transaction_id": transaction_id}


async def send(connection: Connection, number: int) -> bool:
    """A plain send of 1 kB, with its answer."""
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

    name: str = f"send to received at {arrivals.PER_SECOND}/s"
    operations: int = 1
    kind: str | None = None

    def over(self, running: Broker, seconds: float) -> Measured:
        """Runs the load. Returns the latencies from the start of each send to its arrival."""
        return Measured(seconds, load.run(arrivals.end_to_end(running.port, seconds)))


AnyCase = Case | Arrival | Rows
LOADS: tuple[AnyCase, ...] = (
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


def run(case: AnyCase, report: Report) -> None:
    """Measures a case on new brokers and a new yardstick.

    Rows of an earlier case would influence the result: autovacuum would process them a minute later, and then short
    messages would fill the gaps that long messages left in each page, at twice PostgreSQL's CPU.
    """
    with contextlib.ExitStack() as stack:
        brokers = {
            side: stack.enter_context(
                broker.running(ALONE if side == OTHER else report.options.processes, worker=False, checkout=checkout)
            )
            for side, checkout in report.options.sides().items()
        }
        yardstick, seconds = stack.enter_context(limit.ready()), report.options.seconds
        for running in brokers.values():
            case.over(running, min(WARM_UP_SECONDS, seconds))
        sides = {side: partial(_measured, case, running, seconds) for side, running in brokers.items()}
        if case.kind is not None:
            best = partial(_limit, case, yardstick, brokers["ours"], min(2.0, seconds))
            in_turns(report, case.name, {LIMIT: best, **sides}, OTHER)
        else:
            in_turns(report, case.name, sides, OTHER, by_latency)


def _measured(case: AnyCase, running: Broker, seconds: float) -> Figures:
    return measure(running, lambda: case.over(running, seconds), case.operations)


def _limit(case: AnyCase, yardstick: Limit, ours: Broker, seconds: float) -> Figures:
    if isinstance(case, Rows):
        return Figures(case.over(ours, seconds, INSERT).per_second)
    return yardstick.measure(str(case.kind), seconds)


CASES: Cases = {**{case.name: partial(run, case) for case in LOADS}, **client.CASES, **rocketmq.CASES, **cells.CASES}
