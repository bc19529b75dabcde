"""Checks: half messages that become due at the same time, checked by a real worker over HTTP."""

import time
import uuid

import psycopg

from mqbroker.embedded import commands
from mqbroker.embedded.folder import free_port
from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.load import Connection
from tools.bench.report import Report

GROUP = "checked"
GIVE_UP_SECONDS = 180


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


def _half(number: int) -> dict[str, str]:
    ids = {"producer_group": GROUP, "transaction_id": str(uuid.uuid4())}
    return {"op": "half", "topic": "checked", "body": "x" * 200, **ids}


async def register(port: int, group: str, max_batch: int, endpoint_port: int) -> None:
    """Registers the endpoint of a group, which gets up to `max_batch` transactions per call."""
    connection = await Connection.open(port)
    endpoint = {"url": f"http://127.0.0.1:{endpoint_port}/", "max_batch": max_batch, "concurrency": 32}
    status, answer = await connection.post(f"/v1/producer-groups/{group}/endpoints", endpoint)
    if status != 201:
        raise RuntimeError(f"the endpoint was not registered: {answer}")


def main(max_batch: int, halves: int, report: Report) -> None:
    """Prints checks per second, from the registration of the endpoint until every transaction is ended."""
    halves = report.options.messages or halves
    with broker.running(TRANSACTION_TIMEOUT_SECONDS=0) as running:
        port = free_port()
        running.start("endpoint", commands.python("-m", "tools.bench.programs.endpoint", str(port)))
        # The half messages belong to a group without an endpoint: they become due, but no check is sent.
        load.fill(running.port, halves, _half)
        before, began = running.cpu_seconds(), time.monotonic()
        load.run(register(running.port, GROUP, max_batch, port))
        while (done := ended(running, GROUP)) < halves:
            if time.monotonic() - began > GIVE_UP_SECONDS:
                raise RuntimeError(f"only {done} of {halves} are ended")
            time.sleep(0.1)
        seconds, used = time.monotonic() - began, running.cpu_seconds()
    report.line(
        f"{halves:,} checks due at once, {max_batch} to a call",
        {
            "seconds": seconds,
            "per_second": halves / seconds,
            "worker_cpu_us": (used["worker"] - before["worker"]) * 1e6 / halves,
            "web_cpu_us": (used["web"] - before["web"]) * 1e6 / halves,
        },
    )
