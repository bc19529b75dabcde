"""Overload: requests at twice the rate that a web process manages; what is stored, and how soon the rest is refused."""

import asyncio
import time
import uuid
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import msgspec

from bench import broker, load, throughput
from bench.broker import Broker
from bench.load import Connection, Measured
from bench.report import Report

TIMES = 2.0
# What may wait in the process: at the capacity of one machine a tenth of a second.
MAX_WAITING = 1024
# More callers than may wait, and those that are refused meanwhile.
CALLERS = 2048
OPENED_TOGETHER = 128
CLOSED = 64
TICK_SECONDS = 0.002
# Ends and acks that are due during the overload, a second.
PER_SECOND = 20
RECOVERED_SECONDS = 10.0
# A lone send that takes no longer has nothing in front of it.
CALM_SECONDS = 0.1


@dataclass
class Answers:
    """The answers to an open load: latencies in seconds by status, and the calls that found no caller free."""

    latencies: dict[int, list[float]] = field(default_factory=dict)
    unsent: int = 0

    def add(self, status: int, seconds: float) -> None:
        self.latencies.setdefault(status, []).append(seconds)

    def of(self, status: int, seconds: float) -> Measured:
        """The answers of one status."""
        return Measured(seconds, self.latencies.get(status, []))


async def open_loop(port: int, per_second: float, seconds: float) -> Answers:
    """Sends at a rate that does not wait for answers, each by the next caller that is free."""
    answers = Answers()
    free: deque[Connection] = deque()
    while len(free) < CALLERS:
        # Soon: an idle connection is closed after half a minute.
        free.extend(await asyncio.gather(*(Connection.open(port) for _ in range(OPENED_TOGETHER))))

    async def send(connection: Connection) -> None:
        began = time.perf_counter()
        status, _ = await connection.ask("POST", "/v1/messages", throughput.SEND)
        answers.add(status, time.perf_counter() - began)
        free.append(connection)

    start, begun = time.perf_counter(), 0
    async with asyncio.TaskGroup() as calls:
        while (elapsed := time.perf_counter() - start) < seconds:
            while begun < elapsed * per_second:
                begun += 1
                if free:
                    calls.create_task(send(free.popleft()))
                else:
                    answers.unsent += 1
            await asyncio.sleep(TICK_SECONDS)
    for connection in free:
        connection.close()
    return answers


async def begun(port: int, count: int) -> tuple[list[str], list[str]]:
    """The ids of so many transactions to be ended, and the handles of as many deliveries to be acked."""
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
    """The answers to the ends and acks, PER_SECOND of each."""
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
    """Seconds until a lone send is answered as if nothing had been."""
    connection, start = await Connection.open(port), time.perf_counter()
    while (began := time.perf_counter()) - start < RECOVERED_SECONDS:
        status, _ = await connection.ask("POST", "/v1/messages", throughput.SEND)
        if status == 201 and time.perf_counter() - began < CALM_SECONDS:
            break
    return time.perf_counter() - start


async def overloaded(port: int, per_second: float, seconds: float) -> tuple[Answers, Answers, float]:
    """The answers to new work, those to ends and acks meanwhile, and the seconds of the recovery."""
    settling = asyncio.create_task(settled(port, *await begun(port, int(PER_SECOND * seconds))))
    new = await open_loop(port, per_second, seconds)
    after = await recovery(port)
    return new, await settling, after


def resident_bytes(group: int) -> int:
    """Memory of the processes of a group."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = stat.read_text().rsplit(")", 1)[1].split()
        if int(fields[2]) == group:
            found += int(fields[21]) * 4096
    return found


def main(report: Report) -> None:
    """Prints the medians of rounds that measure the capacity, and then twice of it."""
    with broker.running(worker=False, GROUP_COMMIT_MAX_WAITING=MAX_WAITING) as running:
        _warm_up(running)
        before = resident_bytes(running.processes["web"].pid)
        rounds = [_round(report, running, number) for number in range(report.options.rounds)]
        grown = resident_bytes(running.processes["web"].pid) - before
        report.line("at twice the capacity", {name: median(one[name] for one in rounds) for name in rounds[0]})
        report.line("memory", {"before_mb": before / 1e6, "grown_mb": grown / 1e6})


def _warm_up(running: Broker) -> None:
    load.run(load.closed_loop(running.port, CLOSED, None, throughput.send, throughput.WARM_UP_SECONDS))


def _round(report: Report, running: Broker, number: int) -> dict[str, float]:
    report.progress(f"round {number + 1} of {report.options.rounds}")
    seconds = report.options.seconds
    capacity = load.run(load.closed_loop(running.port, CLOSED, None, throughput.send, seconds)).per_second
    new, settlements, after = load.run(overloaded(running.port, TIMES * capacity, seconds))
    stored, refused = new.of(201, seconds), new.of(503, seconds)
    urgent = settlements.of(200, seconds)
    others = Counter({status: len(found) for status, found in new.latencies.items() if status not in (201, 503)})
    return {
        "capacity_per_second": capacity,
        "offered_per_second": sum(map(len, new.latencies.values())) / seconds,
        "goodput": stored.per_second / capacity,
        "refused_per_second": refused.per_second,
        "refused_p99_ms": refused.percentile_ms(99) if refused.latencies else 0.0,
        "stored_p99_ms": stored.percentile_ms(99),
        "ends_and_acks_p99_ms": urgent.percentile_ms(99),
        "ends_and_acks_refused": sum(map(len, settlements.latencies.values())) - len(urgent.latencies),
        "other_answers": others.total(),
        "unsent": new.unsent,
        "recovered_seconds": after,
    }
