"""What large reads cost a small send: beside readers of 16 MiB pages, and beside groups that receive 4 MB messages."""

import asyncio
import base64
import contextlib
import multiprocessing
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from multiprocessing.synchronize import Event
from pathlib import Path

import msgspec

from bench import broker, load
from bench.broker import KEY, Broker
from bench.checkout import OURS, Checkout
from bench.figures import Figures
from bench.load import Connection
from bench.report import Report

MEBIBYTE = 1024 * 1024
# One queue with four pages of sixteen messages.
PAGE_MESSAGES = 16
PAGES = 4
READERS = 8
# One queue that each group receives from its start on.
LARGE_BODY_BYTES = 4_000_000
LARGE_MESSAGES = 20
GROUPS = 12
# What fills the caches of a fresh process is not measured.
WARM_UP_SECONDS = 1.0
SMALL = msgspec.json.encode({"topic": "small", "body": "x" * 200})
LAST_CHUNK = b"0\r\n\r\n"

# Reads once, and says whether there was anything.
Read = Callable[["Raw"], Awaitable[bool]]


class Raw:
    """A kept connection that reads answers of any size and drops them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Makes one request; returns the bytes of its answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}"
        self._writer.write(f"{head}\r\n\r\n".encode() + body)
        answer = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if b" 200 " not in answer[:16]:
            raise RuntimeError(f"{path} was answered with {answer[:16]!r}")
        length = answer.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if length:
            return len(await self._reader.readexactly(int(length)))
        size, tail = 0, b""
        while not tail.endswith(LAST_CHUNK):
            data = await self._reader.read(MEBIBYTE)
            size += len(data)
            tail = (tail + data)[-len(LAST_CHUNK) :]
        return size


def pull(number: int) -> Read:
    """Reads the large pages of a queue in turns."""
    offsets = iter(range(number, 2**31))

    async def read(connection: Raw) -> bool:
        offset = next(offsets) % PAGES * PAGE_MESSAGES
        await connection.ask("GET", f"/v1/topics/pages/queues/0/messages?offset={offset}&max={PAGE_MESSAGES}")
        return True

    return read


def receive(number: int) -> Read:
    """Receives all large messages, as one group after the other."""
    groups = iter(range(2**31))
    group = f"group-{number}-{next(groups)}"

    async def read(connection: Raw) -> bool:
        nonlocal group
        size = await connection.ask("POST", f"/v1/consumer-groups/{group}/receive", b'{"topic": "large"}')
        if size < MEBIBYTE:
            group = f"group-{number}-{next(groups)}"
        return size >= MEBIBYTE

    return read


async def _read_on(port: int, number: int, kind: Callable[[int], Read], done: Event) -> int:
    read = kind(number)
    connection = Raw(*await asyncio.open_connection("127.0.0.1", port, limit=MEBIBYTE))
    pages = 0
    while not done.is_set():
        pages += await read(connection)
    return pages


def _readers(
    port: int, count: int, kind: Callable[[int], Read], done: Event, pages: "multiprocessing.Queue[int]"
) -> None:
    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(_read_on(port, number, kind, done) for number in range(count)))

    pages.put(sum(load.run(all_of_them())))


@contextlib.contextmanager
def reading(port: int, count: int, kind: Callable[[int], Read] | None) -> Iterator[list[int]]:
    """So many readers in a process of their own; their pages are in the list after the block."""
    read: list[int] = []
    if kind is None:
        yield read
        return
    context = multiprocessing.get_context("fork")
    done, pages = context.Event(), context.Queue()
    process = context.Process(target=_readers, args=(port, count, kind, done, pages))
    process.start()
    try:
        time.sleep(WARM_UP_SECONDS)
        yield read
    finally:
        done.set()
        read.append(pages.get(timeout=60))
        process.join()


async def fill(port: int) -> None:
    """Sends the messages that are read."""
    connection = await Connection.open(port)
    for topic in ("pages", "large", "small"):
        await connection.ask("PUT", f"/v1/topics/{topic}", b'{"queues": 1}')
    for topic, messages, size in (
        ("pages", PAGES * PAGE_MESSAGES, MEBIBYTE),
        ("large", LARGE_MESSAGES, LARGE_BODY_BYTES),
    ):
        for _ in range(messages):
            # Text that does not shrink, so that PostgreSQL keeps and sends all of it.
            body = base64.b64encode(os.urandom(size * 3 // 4)).decode()
            status, answer = await connection.post("/v1/messages", {"topic": topic, "body": body})
            if status != 201:
                raise RuntimeError(f"a message of {size} bytes was not stored: {answer}")


async def send(connection: Connection, _: int) -> bool:
    """Sends one small message."""
    status, _answer = await connection.ask("POST", "/v1/messages", SMALL)
    return status == 201


CASES: dict[str, tuple[int, Callable[[int], Read] | None]] = {
    "alone": (0, None),
    f"beside {READERS} readers of pages of 16 MiB": (READERS, pull),
    f"beside {GROUPS} groups receiving messages of 4 MB": (GROUPS, receive),
}


def measure(
    running: Broker, count: int, kind: Callable[[int], Read] | None, seconds: float
) -> tuple[Figures, dict[str, float]]:
    """The latency of one sender beside the readers, and how fast these read."""
    with reading(running.port, count, kind) as pages:
        began = time.perf_counter()
        sent = load.run(load.closed_loop(running.port, 1, None, send, seconds))
        took = time.perf_counter() - began
    figures = Figures(
        per_second=sent.per_second,
        p50_ms=sent.percentile_ms(50),
        p99_ms=sent.percentile_ms(99),
        refused=float(sent.refused),
    )
    return figures, {"pages_per_second": sum(pages) / took, "load": os.getloadavg()[0]}


def main(report: Report) -> None:
    """Prints the medians of a send's latency, of this checkout and of the other one in turns."""
    options = report.options
    sides = [Checkout(OURS), *([Checkout(Path(options.beside))] if options.beside else [])]
    report.fact("load at the start", " ".join(f"{one:.1f}" for one in os.getloadavg()))
    with contextlib.ExitStack() as stack:
        brokers = {side.name: stack.enter_context(broker.running(worker=False, checkout=side)) for side in sides}
        for running in brokers.values():
            load.run(fill(running.port))
        for number in range(options.rounds):
            for case, (count, kind) in CASES.items():
                for name, running in brokers.items():
                    figures, reads = measure(running, count, kind, options.seconds)
                    report.measured(case, name, figures)
                    report.line(f"round {number + 1}, {case}, {name}", reads)
    report.fact("load at the end", " ".join(f"{one:.1f}" for one in os.getloadavg()))
    report.table()
