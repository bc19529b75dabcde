"""Readers far behind: one that lags a million messages beside one at the head, and a group under a pinned snapshot."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence

import msgspec
import psycopg

from bench import broker, load
from bench.broker import Broker
from bench.load import Connection
from bench.report import Report

LAG = 1_000_000
QUEUES = 4
PER_BULK = 500
PAGE = 500
PAGES = 100
# Messages that a group receives and acks in one measurement, and the connections it uses.
STRETCH = 10_000
STRETCHES_PINNED = 5
CONNECTIONS = 4


def fill(running: Broker, topic: str, messages: int) -> float:
    """Sends so many messages; returns the seconds it took."""

    async def one_bulk(connection: Connection, number: int) -> bool:
        message = {"op": "send", "topic": topic, "body": "x" * 200}
        status, _ = await connection.post("/v1/bulk", {"operations": [message] * PER_BULK})
        return status == 200

    async def all_of_it() -> load.Measured:
        connection = await Connection.open(running.port)
        await connection.ask("PUT", f"/v1/topics/{topic}", b'{"queues": %d}' % QUEUES)
        return await load.closed_loop(running.port, 4, messages // PER_BULK, one_bulk)

    return load.run(all_of_it()).seconds


async def pulled_per_second(port: int, topic: str, offset: int) -> float:
    """Messages per second of a pull from an offset on, page by page."""
    connection = await Connection.open(port)
    began = time.perf_counter()
    for page in range(PAGES):
        path = f"/v1/topics/{topic}/queues/0/messages?offset={offset + page * PAGE}&max={PAGE}"
        status, answer = await connection.ask("GET", path)
        if status != 200 or len(msgspec.json.decode(answer)["messages"]) != PAGE:
            raise RuntimeError(f"{path} answered {status} or less than a page")
    return PAGE * PAGES / (time.perf_counter() - began)


async def make_group(port: int, group: str, **settings: object) -> None:
    """Makes a consumer group."""
    connection = await Connection.open(port)
    await connection.ask("PUT", f"/v1/consumer-groups/{group}", msgspec.json.encode(settings))


async def move(port: int, group: str, topic: str, offset: int) -> None:
    """Moves a group to an offset of each queue."""
    connection = await Connection.open(port)
    reset = msgspec.json.encode({"topic": topic, "to": offset})
    status, answer = await connection.ask("PUT", f"/v1/consumer-groups/{group}/offsets", reset)
    if status != 200:
        raise RuntimeError(f"{group} was not moved: {answer!r}")


async def consumed_per_second(port: int, group: str, topic: str, messages: int = STRETCH) -> float:
    """Messages per second that a group receives and acks, 32 at a time."""
    acked = 0

    async def client() -> None:
        nonlocal acked
        connection = await Connection.open(port)
        while acked < messages:
            request = {"topic": topic, "wait_seconds": 1}
            _, answer = await connection.post(f"/v1/consumer-groups/{group}/receive", request)
            entries = answer["messages"]
            assert isinstance(entries, list)
            if entries:
                handles = [entry["receipt_handle"] for entry in entries]
                await connection.post(f"/v1/consumer-groups/{group}/ack", {"receipt_handles": handles})
                acked += len(handles)

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return acked / (time.perf_counter() - began)


@contextlib.contextmanager
def pinned_snapshot(running: Broker) -> Iterator[None]:
    """A transaction with the snapshot of now: VACUUM removes no row that is deleted meanwhile."""
    with psycopg.connect(running.database_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM topic")
        yield


def compared(behind: Sequence[float], head: Sequence[float]) -> dict[str, float]:
    """The best of the rounds of each: other processes use the machine, too."""
    return {
        "behind_per_second": max(behind),
        "at_the_head_per_second": max(head),
        "times_slower": max(head) / max(behind),
    }


def pulls(running: Broker, report: Report) -> None:
    """The first pages of a queue, and its last ones."""
    head = LAG // QUEUES - PAGE * PAGES
    behind, at_head = [], []
    for _ in range(3):
        behind.append(load.run(pulled_per_second(running.port, "long", 0)))
        at_head.append(load.run(pulled_per_second(running.port, "long", head)))
    report.line(f"pulled {LAG} behind", compared(behind, at_head))


def groups(running: Broker, report: Report) -> None:
    """A group at the first offset, and one near the last."""
    per_queue = LAG // QUEUES
    behind, at_head = [], []
    load.run(make_group(running.port, "behind"))
    load.run(make_group(running.port, "ahead"))
    for _ in range(3):
        load.run(move(running.port, "behind", "long", 0))
        load.run(move(running.port, "ahead", "long", per_queue - STRETCH))
        behind.append(load.run(consumed_per_second(running.port, "behind", "long")))
        at_head.append(load.run(consumed_per_second(running.port, "ahead", "long")))
    report.line(f"received and acked {LAG} behind", compared(behind, at_head))


def pinned(running: Broker, report: Report) -> None:
    """Groups that receive while VACUUM removes none of their dead rows."""
    for kind, settings in (("group", {}), ("ordered group", {"ordered": True})):
        group = kind.replace(" ", "-")
        load.run(make_group(running.port, group, **settings))
        with pinned_snapshot(running):
            rates = [load.run(consumed_per_second(running.port, group, "long")) for _ in range(STRETCHES_PINNED + 1)]
        report.line(
            f"{kind} under a pinned snapshot",
            {
                "first_per_second": rates[0],
                f"after_{STRETCH * STRETCHES_PINNED}_per_second": rates[-1],
                "times_slower": rates[0] / rates[-1],
            },
        )


def main(report: Report) -> None:
    """Prints rates far behind beside those at the head, and those under a pinned snapshot."""
    with broker.running() as running:
        report.line("filled", {"messages": LAG, "seconds": fill(running, "long", LAG)})
        pulls(running, report)
        groups(running, report)
        pinned(running, report)
