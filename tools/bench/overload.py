"""Overload: sends requests at twice the capacity of a web process, and counts stored and refused requests.

The broker and its PostgreSQL have one half of the cores, the load has the other half, so that it takes no CPU from the
measured processes. The CPU share of the load is printed.
"""

import asyncio
import os
import time
import uuid
from collections import Counter, deque
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import cast

import msgspec
import psycopg

from tools.bench import broker, load, machine, stopped, throughput, turns
from tools.bench.broker import KEY, Broker
from tools.bench.load import Connection, Measured
from tools.bench.report import Cases, Report

TIMES = 2.0
OPENED_TOGETHER = 128
# The number of connections with which a process reaches its capacity.
CLOSED = 128
TICK_SECONDS = 0.001
# The number of ends and of acks per second during the overload.
PER_SECOND = 20
RECOVERED_SECONDS = 10.0
# A single send that takes at most this time has not waited behind other sends.
CALM_SECONDS = 0.1
HEAD = f"POST /v1/messages HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\nContent-Length: "
REQUEST = f"{HEAD}{len(throughput.SEND)}\r\n\r\n".encode() + throughput.SEND


@dataclass
class Answers:
    """The answers to an open load: latencies in seconds by status, and the number of messages stored before its end.

    `unsent` counts sends that were not made because no caller was free, `closed` counts connections that ended without
    an answer.
    """

    latencies: dict[int, list[float]] = field(default_factory=dict)
    stored: int = 0
    without_retry_after: int = 0
    unsent: int = 0
    closed: int = 0

    def add(self, status: int, seconds: float) -> None:
        self.latencies.setdefault(status, []).append(seconds)

    def of(self, status: int, seconds: float) -> Measured:
        """The answers with one status."""
        return Measured(seconds, self.latencies.get(status, []))


class Caller(asyncio.Protocol):
    """A connection that sends messages one after the other: about 10 µs of CPU for each, without a task or a future."""

    def __init__(self, answers: Answers, free: deque["Caller"]) -> None:
        self._answers = answers
        self._free = free
        self._received = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has another type than asyncio.Transport.
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._answers.closed += self._began > 0

    def send(self) -> None:
        """Sends a message."""
        self._began = time.perf_counter()
        self.transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        self._received += data
        # Every answer is one JSON object.
        if not self._received.endswith(b"}"):
            return
        status = int(self._received[9:12])
        self._answers.add(status, time.perf_counter() - self._began)
        self._answers.without_retry_after += status == 503 and b"retry-after: " not in self._received
        self._received, self._began = b"", 0.0
        self._free.append(self)


async def open_loop(port: int, count: int, per_second: float, seconds: float) -> Answers:
    """Sends at a fixed rate without waiting for answers; each message by the next free caller."""
    answers = Answers()
    free: deque[Caller] = deque()
    loop = asyncio.get_running_loop()
    while len(free) < count:
        # All connections are opened at once, because an idle connection is closed after half a minute.
        opening = (
            loop.create_connection(lambda: Caller(answers, free), "127.0.0.1", port) for _ in range(OPENED_TOGETHER)
        )
        free.extend([caller for _, caller in await asyncio.gather(*opening)])
    callers = list(free)
    start, begun = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < seconds:
        while begun < elapsed * per_second:
            begun += 1
            if free:
                free.popleft().send()
            else:
                answers.unsent += 1
        await asyncio.sleep(TICK_SECONDS)
    answers.stored = len(answers.latencies.get(201, ()))
    last = start + seconds + RECOVERED_SECONDS
    while len(free) + answers.closed < len(callers) and time.perf_counter() < last:  # noqa: ASYNC110  # it comes by wire
        await asyncio.sleep(TICK_SECONDS)
    for caller in callers:
        caller.transport.close()
    return answers


async def begun(port: int, count: int) -> tuple[list[str], list[str]]:
    """The ids of `count` transactions to end, and the receipt handles of as many deliveries to ack."""
    connection = await Connection.open(port)
    ids = [str(uuid.uuid4()) for _ in range(count)]
    for id_ in ids:
        await connection.post("/v1/transactions", throughput.half(id_))
    handles: list[str] = []
    while len(handles) < count:
        await connection.ask("POST", "/v1/messages", throughput.SEND)
        _, answer = await connection.post("/v1/consumer-groups/overload/receive", {"topic": "sends"})
        messages = answer["messages"]
        assert isinstance(messages, list)
        handles += [entry["receipt_handle"] for entry in messages]
    return ids, handles


async def settled(port: int, ids: list[str], handles: list[str]) -> Answers:
    """Sends PER_SECOND ends and PER_SECOND acks per second. Returns the answers."""
    answers = Answers()
    ending, acking = await Connection.open(port), await Connection.open(port)

    async def settle(connection: Connection, path: str, content: bytes) -> None:
        began = time.perf_counter()
        status, _ = await connection.ask("POST", path, content)
        answers.add(status, time.perf_counter() - began)

    for id_, handle in zip(ids, handles, strict=False):
        end = settle(ending, f"/v1/transactions/{id_}/end", throughput.END)
        handles_ = msgspec.json.encode({"receipt_handles": [handle]})
        ack = settle(acking, "/v1/consumer-groups/overload/ack", handles_)
        await asyncio.gather(end, ack, asyncio.sleep(1 / PER_SECOND))
    return answers


async def recovery(port: int) -> float:
    """Seconds until a single send is answered as fast as before the overload."""
    connection, start = await Connection.open(port), time.perf_counter()
    while (began := time.perf_counter()) - start < RECOVERED_SECONDS:
        status, _ = await connection.ask("POST", "/v1/messages", throughput.SEND)
        if status == 201 and time.perf_counter() - began < CALM_SECONDS:
            break
    return time.perf_counter() - start


async def overloaded(port: int, callers: int, per_second: float, seconds: float) -> tuple[Answers, Answers, float]:
    """The answers to new messages, the answers to ends and acks in the same time, and the seconds of recovery."""
    settling = asyncio.create_task(settled(port, *await begun(port, int(PER_SECOND * seconds))))
    new = await open_loop(port, callers, per_second, seconds)
    after = await recovery(port)
    return new, await settling, after


def main(case: str, callers: int, report: Report) -> None:
    """Prints medians over rounds; each round measures the capacity, then twice this load."""
    with (
        psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection,
        broker.running(worker=False) as running,
    ):
        web = running.processes["web"].pid
        with machine.apart([*machine.processes_of_group(web), *machine.processes_of_server(connection)]) as is_apart:
            report.fact("cores of broker and load", "half of the cores each" if is_apart else "the same cores")
            _closed(running, throughput.WARM_UP_SECONDS)
            before = machine.rss_bytes_of_group(web)
            rounds = [_round(running, callers, report.options.seconds) for _ in turns.rounds(report, case, [])]
            grown = machine.rss_bytes_of_group(web) - before
        medians = {name: median(one[name] for one in rounds) for name in rounds[0]}
        report.line(f"at twice the capacity, {case}", {**medians, "before_mb": before / 1e6, "grown_mb": grown / 1e6})


def _closed(running: Broker, seconds: float) -> float:
    """The sends per second that a process reaches."""
    return load.run(load.closed_loop(running.port, CLOSED, None, throughput.send, seconds)).per_second


def _round(running: Broker, callers: int, seconds: float) -> dict[str, float]:
    capacity = _closed(running, seconds)
    web, own = running.cpu_seconds()["web"], time.process_time()
    new, settlements, after = load.run(overloaded(running.port, callers, TIMES * capacity, seconds))
    web, own = running.cpu_seconds()["web"] - web, time.process_time() - own
    stored, refused = new.of(201, seconds), new.of(503, seconds)
    urgent = settlements.of(200, seconds)
    others = Counter({status: len(found) for status, found in new.latencies.items() if status not in (201, 503)})
    return {
        "capacity_per_second": capacity,
        "offered_per_second": sum(map(len, new.latencies.values())) / seconds,
        "goodput": new.stored / seconds / capacity,
        "refused_per_second": refused.per_second,
        "refused_p99_ms": refused.percentile_ms(99) if refused.latencies else 0.0,
        "stored_p99_ms": stored.percentile_ms(99),
        "ends_and_acks_p99_ms": urgent.percentile_ms(99),
        "ends_and_acks_refused": sum(map(len, settlements.latencies.values())) - len(urgent.latencies),
        "other_answers": others.total(),
        "without_retry_after": new.without_retry_after,
        "closed": new.closed,
        "unsent": new.unsent,
        "web_cores": web / seconds,
        "load_cores": own / seconds,
        "recovered_seconds": after,
    }


CASES: Cases = {
    # The first number of callers just fits into the queue within the longest wait. With the second number, some sends
    # are refused.
    **{case: partial(main, case, callers) for case, callers in (("4,096 callers", 4096), ("8,192 callers", 8192))},
    "stopped process": stopped.main,
}
