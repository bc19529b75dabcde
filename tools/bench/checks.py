"""Checks: half messages that become due at the same time, checked by a real worker over HTTP, compared with the same
writes without HTTP.
"""

import subprocess
import time
import uuid

import msgspec
import psycopg

from mqbroker.embedded import commands
from mqbroker.embedded.folder import free_port
from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.load import Connection
from tools.bench.report import Report

HALVES = {100: 100_000, 1: 20_000}
PER_BULK = 500
GIVE_UP_SECONDS = 180


def store_halves(running: Broker, group: str, halves: int) -> None:
    """Stores half messages of a group without an endpoint: they become due, but no check is sent."""

    async def one_bulk(connection: Connection, number: int) -> bool:
        operations = [
            {
                "op": "half",
                "topic": "checked",
                "body": "x" * 200,
                "producer_group": group,
                "transaction_id": str(uuid.uuid4()),
            }
            for _ in range(PER_BULK)
        ]
        status, _ = await connection.post("/v1/bulk", {"operations": operations})
        return status == 200

    measured = load.run(load.closed_loop(running.port, 4, halves // PER_BULK, one_bulk))
    if measured.refused:
        raise RuntimeError(f"{measured.refused} bulk requests were refused")


def ended(running: Broker, group: str) -> int:
    """The number of the group's committed transactions."""
    with psycopg.connect(running.database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM operation o JOIN producer_group g ON g.id = o.producer_group_id"
            " WHERE g.name = %s AND o.decision = 'COMMIT'",
            (group,),
        ).fetchone()
    assert row is not None
    return int(row[0])


def seconds_to_end(running: Broker, group: str, halves: int, max_batch: int, endpoint_port: int) -> float:
    """Seconds from the registration of the endpoint until every transaction is ended."""

    async def register() -> None:
        connection = await Connection.open(running.port)
        endpoint = {"url": f"http://127.0.0.1:{endpoint_port}/", "max_batch": max_batch, "concurrency": 32}
        status, answer = await connection.post(f"/v1/producer-groups/{group}/endpoints", endpoint)
        if status != 201:
            raise RuntimeError(f"the endpoint was not registered: {answer}")

    load.run(register())
    began = time.monotonic()
    while ended(running, group) < halves:
        if time.monotonic() - began > GIVE_UP_SECONDS:
            raise RuntimeError(f"only {ended(running, group)} of {halves} are ended")
        time.sleep(0.1)
    return time.monotonic() - began


def without_http(running: Broker, group: str) -> float:
    """Ends per second when claimed half messages are answered within the process, without HTTP."""
    done = subprocess.run(
        commands.python("-m", "tools.bench.programs.checks", group),
        env=running.environment,
        cwd=commands.ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=float)


def main(report: Report) -> None:
    """Prints checks per second for an endpoint that takes 100 transactions per call, and for one that takes one."""
    with broker.running(TRANSACTION_TIMEOUT_SECONDS=0) as running:
        port = free_port()
        running.start("endpoint", commands.python("-m", "tools.bench.programs.endpoint", str(port)))
        store_halves(running, "alone", HALVES[1])
        alone = without_http(running, "alone")
        for max_batch, halves in HALVES.items():
            group = f"batch{max_batch}"
            store_halves(running, group, halves)
            before = running.cpu_seconds()
            seconds = seconds_to_end(running, group, halves, max_batch, port)
            used = running.cpu_seconds()
            report.line(
                f"{halves} halves due at once, max_batch {max_batch}",
                {
                    "seconds": seconds,
                    "per_second": halves / seconds,
                    "statements_alone_per_second": alone,
                    "ratio_to_statements": halves / seconds / alone,
                    "worker_cpu_us": (used["worker"] - before["worker"]) * 1e6 / halves,
                    "web_cpu_us": (used["web"] - before["web"]) * 1e6 / halves,
                },
            )
