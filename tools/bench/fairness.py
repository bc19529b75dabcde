"""A fair group: how long quiet tenants wait beside a noisy one, and the cost of taking turns and of limits."""

import asyncio
import json
import os
import time
import uuid
from collections.abc import Callable

from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.load import Connection, Measured
from tools.bench.report import Report

NOISY = int(os.environ.get("MQ_NOISY", "500000"))
QUIET = 50
# Messages per second of all quiet tenants together.
PER_SECOND = 100
SECONDS = 15
PER_BULK = 500
CONSUMERS = 8
TOPIC, ALONE = "tenants", "alone"
UNLIMITED: dict[str, dict[str, int]] = {f"noisy-{number}": {} for number in range(4)}
DRAINED = {
    "unfair": {},
    "drained": {"fair_by": "sharding_key"},
    "unlimited-values": {"limits": {"by": "sharding_key", "in_flight": 5, "values": UNLIMITED}},
    "limited-values": {"limits": {"by": "sharding_key", "in_flight": 500}},
}


class Crowd:
    """Consumers of a group that ack at once, and the arrival time of each body."""

    def __init__(self, port: int, group: str, topic: str) -> None:
        self.port = port
        self.group = f"/v1/consumer-groups/{group}"
        self.topic = topic
        self.arrived: dict[str, float] = {}
        self.acked = 0
        self.stop = asyncio.Event()

    async def consume(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Runs one consumer; all consumers stop when `is_over` returns True."""
        connection = await Connection.open(self.port)
        while not self.stop.is_set():
            _, answer = await connection.post(
                f"{self.group}/receive", {"topic": self.topic, "wait_seconds": 1, "max_messages": 32}
            )
            now = time.perf_counter()
            messages = answer["messages"]
            assert isinstance(messages, list)
            self.arrived.update((entry["message"]["body"], now) for entry in messages)
            if messages:
                handles = [entry["receipt_handle"] for entry in messages]
                await connection.post(f"{self.group}/ack", {"receipt_handles": handles})
                self.acked += len(handles)
            if is_over():
                self.stop.set()

    async def beside(self, seconds: float) -> list[float]:
        """Seconds from the send of each message of a quiet tenant to its arrival, while they consume."""
        connection, run, sent = await Connection.open(self.port), uuid.uuid4().hex, dict[str, float]()
        consumers = asyncio.gather(*(self.consume() for _ in range(CONSUMERS)))
        began = time.monotonic()
        for number in range(int(PER_SECOND * seconds)):
            await asyncio.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
            body = f"{run}:{number}"
            sent[body] = time.perf_counter()
            tenant = f"quiet-{number % QUIET}"
            await connection.post("/v1/messages", {"topic": self.topic, "body": body, "sharding_key": tenant})
        await asyncio.sleep(2)
        self.stop.set()
        await consumers
        # A message that has not arrived counts as having waited until the end.
        over = time.perf_counter()
        return [self.arrived.get(body, over) - at for body, at in sent.items()]

    async def catch_up(self) -> float:
        """Seconds until a message of each quiet tenant, sent after the backlog, arrives: by then the whole backlog was
        read ahead.
        """
        connection, run = await Connection.open(self.port), uuid.uuid4().hex
        behind = {f"{run}:{number}": f"quiet-{number}" for number in range(QUIET)}
        for body, tenant in behind.items():
            await connection.post("/v1/messages", {"topic": self.topic, "body": body, "sharding_key": tenant})
        began = time.perf_counter()
        await asyncio.gather(*(self.consume(lambda: behind.keys() <= self.arrived.keys()) for _ in range(CONSUMERS)))
        return max(self.arrived[body] for body in behind) - began

    async def drain(self, count: int) -> float:
        """Seconds until the consumers have received and acked this number of messages."""
        began = time.perf_counter()
        consumers = asyncio.gather(*(self.consume(lambda: self.acked >= count) for _ in range(CONSUMERS)))
        await self.stop.wait()
        seconds = time.perf_counter() - began
        await consumers
        return seconds


def fill(running: Broker) -> None:
    """Sends the noisy tenant's backlog."""

    async def one_bulk(connection: Connection, number: int) -> bool:
        message = {"op": "send", "topic": TOPIC, "body": "x" * 200, "sharding_key": f"noisy-{number % 4}"}
        status, _ = await connection.post("/v1/bulk", {"operations": [message] * PER_BULK})
        return status == 200

    load.run(load.closed_loop(running.port, 4, NOISY // PER_BULK, one_bulk))


async def prepare(port: int) -> None:
    """Creates the topics, a fair group, and the groups that drain a backlog."""
    connection = await Connection.open(port)
    for topic in (TOPIC, ALONE):
        await connection.ask("PUT", f"/v1/topics/{topic}", b"{}")
    for group, settings in (DRAINED | {"fair": DRAINED["drained"]}).items():
        await connection.ask("PUT", f"/v1/consumer-groups/{group}", json.dumps(settings).encode())


def main(report: Report) -> None:
    """Prints the latencies of quiet tenants alone and beside a noisy one, and the rates of consuming a backlog."""
    with broker.running() as running:
        load.run(prepare(running.port))
        alone = Measured(SECONDS, load.run(Crowd(running.port, "fair", ALONE).beside(SECONDS)))
        fill(running)
        caught_up = load.run(Crowd(running.port, "fair", TOPIC).catch_up())
        report.line(f"{NOISY} read ahead", {"seconds": caught_up})
        beside = Measured(SECONDS, load.run(Crowd(running.port, "fair", TOPIC).beside(SECONDS)))
        for name, measured in (("quiet alone", alone), (f"quiet beside {NOISY} of one", beside)):
            report.line(name, {"p50_ms": measured.percentile_ms(50), "p99_ms": measured.percentile_ms(99)})
        rates = {}
        for group in DRAINED:
            before = running.cpu_seconds()["web"]
            rates[group] = NOISY / load.run(Crowd(running.port, group, TOPIC).drain(NOISY))
            cpu = (running.cpu_seconds()["web"] - before) * 1e6 / NOISY
            report.line(f"drain, {group}", {"per_second": rates[group], "web_cpu_us_per_message": cpu})
        report.line("fair of unfair", {"ratio": rates["drained"] / rates["unfair"]})
        for group in ("unlimited-values", "limited-values"):
            report.line(f"{group} of fair", {"ratio": rates[group] / rates["drained"]})
