"""A fair group: how long quiet tenants wait beside a noisy one, and the cost of taking turns and of limits."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from tools.bench import broker, load
from tools.bench.broker import Broker
from tools.bench.figures import Figures
from tools.bench.load import Connection, Measured
from tools.bench.report import Cases, Report
from tools.bench.turns import in_turns, measure

NOISY = 500_000
QUIET = 50
# Messages per second of all quiet tenants together.
PER_SECOND = 100
CONSUMERS = 8
TOPIC, ALONE = "tenants", "alone"
UNLIMITED: dict[str, dict[str, int]] = {f"noisy-{number}": {} for number in range(4)}
DRAINED = {
    "plain": {},
    "fair": {"fair_by": "sharding_key"},
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
        """For each message of a quiet tenant the seconds from its send to its arrival, while the consumers run."""
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
        # For a message that has not arrived, the time until the end of the measurement counts.
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


def fill(running: Broker, messages: int, noisy: int) -> None:
    """Sends a backlog of this number of noisy tenants, or of messages without keys."""

    def message(number: int) -> dict[str, str]:
        key = {"sharding_key": f"noisy-{number % noisy}"} if noisy else {}
        return {"op": "send", "topic": TOPIC, "body": "x" * 200, **key}

    load.fill(running.port, messages, message)


async def prepare(port: int, group: str, settings: object) -> None:
    """Creates the topics and a group."""
    connection = await Connection.open(port)
    for topic in (TOPIC, ALONE):
        await connection.ask("PUT", f"/v1/topics/{topic}", b"{}")
    status, answer = await connection.ask("PUT", f"/v1/consumer-groups/{group}", json.dumps(settings).encode())
    if status not in (200, 201):
        raise RuntimeError(f"the group was not made: {answer.decode()}")


def quiet(report: Report) -> None:
    """Prints the latencies of quiet tenants alone and beside a noisy one, each over three times `--seconds`."""
    messages, seconds = report.options.messages or NOISY, 3 * report.options.seconds
    with broker.running() as running:
        load.run(prepare(running.port, "fair", DRAINED["fair"]))
        alone = load.run(Crowd(running.port, "fair", ALONE).beside(seconds))
        fill(running, messages, len(UNLIMITED))
        report.line(f"{messages} read ahead", {"seconds": load.run(Crowd(running.port, "fair", TOPIC).catch_up())})
        beside = load.run(Crowd(running.port, "fair", TOPIC).beside(seconds))
        for name, latencies in (("quiet keys alone", alone), (f"quiet keys beside {messages} of noisy keys", beside)):
            measured = Measured(seconds, latencies)
            report.line(name, {"p50_ms": measured.percentile_ms(50), "p99_ms": measured.percentile_ms(99)})


def drains(case: str, messages: int, noisy: int, groups: Sequence[str], report: Report) -> None:
    """Prints the rates of consuming a backlog by new groups of each kind, and the ratios to the first kind."""
    messages = report.options.messages or messages
    with broker.running() as running:
        fill(running, messages, noisy)
        in_turns(report, case, {group: partial(_drained, running, group, messages) for group in groups}, groups[0])


def _drained(running: Broker, kind: str, messages: int) -> Figures:
    group = f"{kind}-{uuid.uuid4().hex[:8]}"
    load.run(prepare(running.port, group, DRAINED[kind]))

    def drain() -> Measured:
        seconds = load.run(Crowd(running.port, group, TOPIC).drain(messages))
        return Measured(seconds, [seconds])

    figures = measure(running, drain, messages)
    figures.p50_ms = figures.p99_ms = None
    return figures


GROUPS = {"fair group, drain": ("plain", "fair"), "limits, drain": ("fair", "unlimited-values", "limited-values")}
CASES: Cases = {
    "fair group, quiet keys": quiet,
    **{case: partial(drains, case, NOISY, len(UNLIMITED), groups) for case, groups in GROUPS.items()},
}
