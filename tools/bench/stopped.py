"""A web process that is stopped under load: how long it delays the sends of another web process."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import msgspec

from mqbroker.embedded.folder import free_port
from tools.bench import broker, load, throughput
from tools.bench.broker import KEY, Broker
from tools.bench.load import Connection
from tools.bench.report import Report

CONNECTIONS = 64
# After this time the load of the process that will be stopped is under way.
SETTLE_SECONDS = 2.0
# How often the process is stopped, each time at another moment of its work.
STOPS = 5


def main(report: Report) -> None:
    """Stops one web process under load several times, and prints the longest send of the other one."""
    with broker.running(worker=False) as running:
        port = free_port()
        commands = running.checkout.commands(KEY, port, "1", Path(running.folder) / "other-schedule")
        running.start("other", commands["web"])
        running.wait_until_ready("other", port)
        group = running.processes["other"].pid
        try:
            longest = load.run(_longest(running, port, group, report.options.seconds))
        finally:
            os.killpg(group, signal.SIGCONT)
    report.line(f"sends beside a process that is stopped {STOPS} times", {"longest_ms": 1000 * longest})


async def _mixed(connection: Connection, number: int) -> bool:
    if number % 3 == 0:
        return await throughput.send(connection, number)
    if number % 3 == 1:
        return await throughput.transact(connection, number)
    path = "/v1/consumer-groups/stopped/receive"
    status, _ = await connection.ask("POST", path, msgspec.json.encode({"topic": "sends"}))
    return status == 200


async def _longest(running: Broker, other: int, group: int, seconds: float) -> float:
    """The longest send of one process in seconds, while the other one is stopped under load."""

    async def loaded() -> None:
        with contextlib.suppress(ConnectionError):
            await load.closed_loop(other, CONNECTIONS, None, _mixed)

    longest, loading = 0.0, asyncio.create_task(loaded())
    await asyncio.sleep(SETTLE_SECONDS)
    for number in range(STOPS):
        os.killpg(group, signal.SIGSTOP)
        measured = await load.closed_loop(running.port, CONNECTIONS, None, throughput.send, seconds)
        os.killpg(group, signal.SIGCONT)
        longest = max(longest, *measured.latencies)
        await asyncio.sleep(0.5 + number / 97)
    loading.cancel()
    await asyncio.gather(loading, return_exceptions=True)
    return longest
