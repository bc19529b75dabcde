"""Distance: how many round trips to the database each call waits for, by a proxy that delays what it passes on."""

import asyncio
import contextlib
import os
import statistics
import threading
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from bench import broker, load
from bench.load import Connection
from bench.report import Report
from embedded.folder import free_port

ROUND_TRIPS_MS = (0.0, 10.0, 40.0)
REQUESTS = 15
CHUNK_BYTES = 65_536
TOPIC, GROUP = "distant", "distant-shop"


class Wire:
    """A TCP proxy in a thread of its own: what goes through it takes half a round trip each way."""

    def __init__(self, host: str, port: int) -> None:
        self.delay_seconds = 0.0
        self.port = free_port()
        self._there = (host, port)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        server = asyncio.start_server(self._serve, "127.0.0.1", self.port)
        asyncio.run_coroutine_threadsafe(server, self._loop).result()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._there)
            await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await reader.read(CHUNK_BYTES):
            # Not slept for: what is sent right behind it arrives right behind it, as over a real distance.
            loop.call_later(self.delay_seconds, writer.write, data)
        loop.call_later(self.delay_seconds, writer.close)


@contextlib.contextmanager
def distant() -> Iterator[Wire]:
    """DATABASE_URL leads through a wire within the block."""
    before = os.environ["DATABASE_URL"]
    parts = urlsplit(before)
    wire = Wire(parts.hostname or "127.0.0.1", parts.port or 5432)
    user, at, _ = parts.netloc.rpartition("@")
    os.environ["DATABASE_URL"] = parts._replace(netloc=f"{user}{at}127.0.0.1:{wire.port}").geturl()
    try:
        yield wire
    finally:
        os.environ["DATABASE_URL"] = before


async def latencies(port: int) -> dict[str, float]:
    """The median latency of each call in ms, one request after another."""
    connection = await Connection.open(port)
    found: dict[str, list[float]] = {}

    async def timed(call: str, path: str, content: dict[str, object]) -> dict[str, object]:
        began = time.perf_counter()
        _, answer = await connection.post(path, content)
        found.setdefault(call, []).append((time.perf_counter() - began) * 1000)
        return answer

    group = f"/v1/consumer-groups/{GROUP}"
    for _ in range(REQUESTS):
        await timed("send", "/v1/messages", {"topic": TOPIC, "body": "order"})
        half = await timed("half", "/v1/transactions", {"topic": TOPIC, "body": "order", "producer_group": GROUP})
        path = f"/v1/transactions/{half['transaction_id']}/end"
        await timed("end", path, {"producer_group": GROUP, "state": "COMMIT"})
        received = await timed("receive", f"{group}/receive", {"topic": TOPIC})
        entries = received["messages"]
        assert isinstance(entries, list)
        handles = [entry["receipt_handle"] for entry in entries]
        await timed("ack", f"{group}/ack", {"receipt_handles": handles})
    connection.close()
    return {call: statistics.median(ms) for call, ms in found.items()}


def main(report: Report) -> None:
    """Prints the latency of each call at each distance, and the round trips that explain it."""
    with distant() as wire, broker.running(worker=False) as running:
        load.run(latencies(running.port))
        measured: dict[float, dict[str, float]] = {}
        for round_trip in ROUND_TRIPS_MS:
            wire.delay_seconds = round_trip / 2000
            measured[round_trip] = load.run(latencies(running.port))
            report.line(f"p50 in ms, {round_trip:.0f} ms away", measured[round_trip])
        near, far = ROUND_TRIPS_MS[0], ROUND_TRIPS_MS[-1]
        trips = {call: (measured[far][call] - ms) / (far - near) for call, ms in measured[near].items()}
        report.line("round trips", trips)
