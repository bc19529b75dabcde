"""Sends and complete transactions at 64 connections, beside the same statements in batches of 200 without HTTP."""

import asyncio
import os
import subprocess
import uuid

import msgspec

from bench import broker, load
from bench.broker import Broker
from bench.load import Connection, Measured
from bench.report import Report
from mqbroker.embedded import commands

CONNECTIONS = 64
ROUNDS = 12_000
BODY = "x" * 1000


async def send(connection: Connection, number: int) -> bool:
    """One plain send of 1 kB."""
    status, _ = await connection.post("/v1/messages", {"topic": "sends", "body": BODY})
    return status == 201


async def transact(connection: Connection, number: int) -> bool:
    """A half message and its commit: two requests."""
    transaction_id = str(uuid.uuid4())
    half = {"topic": "transactions", "body": BODY, "producer_group": "bench", "transaction_id": transaction_id}
    began, _ = await connection.post("/v1/transactions", half)
    end = {"producer_group": "bench", "state": "COMMIT"}
    ended, _ = await connection.post(f"/v1/transactions/{transaction_id}/end", end)
    return began == 201 and ended == 200


def over_http(running: Broker, one_round: load.Round) -> tuple[Measured, float]:
    """What the load saw, and the CPU of the web process per round in microseconds."""
    asyncio.run(load.closed_loop(running.port, CONNECTIONS, ROUNDS // 6, one_round))
    before = running.cpu_seconds()["web"]
    measured = asyncio.run(load.closed_loop(running.port, CONNECTIONS, ROUNDS, one_round))
    return measured, (running.cpu_seconds()["web"] - before) * 1e6 / ROUNDS


def without_http(running: Broker) -> dict[str, float]:
    """Rates of the statements alone, by a process of its own that has no web server in it."""
    done = subprocess.run(
        commands.python("-m", "bench.statements"),
        env=running.environment | {"MQBROKER_GROUP_COMMIT_MAX_REQUESTS": "200"},
        cwd=commands.ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=dict[str, float])


def main(report: Report) -> None:
    """Prints rates, latencies, and the ratios to the statements alone."""
    with broker.running(worker=False) as running:
        alone = without_http(running)
        for name, one_round in (("sends", send), ("transactions", transact)):
            measured, cpu = over_http(running, one_round)
            report.line(
                f"{name} at {CONNECTIONS} connections",
                {
                    "per_second": measured.per_second,
                    "p50_ms": measured.percentile_ms(50),
                    "p99_ms": measured.percentile_ms(99),
                    "web_cpu_us": cpu,
                    "statements_alone_per_second": alone[name],
                    "ratio_to_statements": measured.per_second / alone[name],
                    "refused": measured.refused,
                },
            )
    report.line("machine", {"cores": float(os.cpu_count() or 0), "load": os.getloadavg()[0]})
