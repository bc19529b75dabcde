"""Measures how many small calls a second one core makes: `python -m tests.webhooks.rate`.

The server is another process, so the CPU time counted is the caller's alone.
"""

import asyncio
import multiprocessing
import socket
import time
from typing import cast

import uvloop

from webhooks.addresses import parse_networks
from webhooks.caller import Caller
from webhooks.signing import make_secret

CALLS, AT_ONCE = 20_000, 20
PAYLOAD = b'{"type": "transaction.check", "producer_group": "shop", "transactions": [{"body": "' + b"a" * 600 + b'"}]}'
BODY = b'{"results": [{"transaction_id": "0190b6f2-7d5e-7c3a-9d0e-1f2a3b4c5d6e", "state": "COMMIT"}]}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n" % len(BODY)


class Endpoint(asyncio.Protocol):
    """Answers COMMIT to every request, as quickly as it can."""

    def __init__(self, keep: bool) -> None:
        self._keep, self._read = keep, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance.

    def data_received(self, data: bytes) -> None:
        self._read += data
        if not self._read.endswith(b"]}"):
            return
        self._read = b""
        self._transport.write(ANSWER + (b"\r\n" if self._keep else b"connection: close\r\n\r\n") + BODY)
        if not self._keep:
            self._transport.close()


def serve(listening: socket.socket, keep: bool) -> None:
    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Endpoint(keep), sock=listening)
        await server.serve_forever()

    uvloop.run(forever())


async def call(url: str, secrets: list[str]) -> tuple[float, float]:
    """Seconds and CPU seconds for all calls."""
    async with Caller(parse_networks("127.0.0.0/8")) as caller:
        numbers = iter(range(CALLS))

        async def one_after_another() -> None:
            for _ in numbers:
                got = await caller.post(url, PAYLOAD, secrets, "0190b6f2-7d5e-7c3a-9d0e-1f2a3b4c5d6e", 5)
                assert got.ok, got.reason

        began, began_cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
        return time.perf_counter() - began, time.process_time() - began_cpu


def measure(keep: bool, secrets: int, loop: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = multiprocessing.Process(target=serve, args=(listening, keep), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}/checks"
    run = uvloop.run if loop == "uvloop" else asyncio.run
    seconds, cpu = run(call(url, [make_secret() for _ in range(secrets)]))
    server.terminate()
    server.join()
    connection = "kept" if keep else "new each time"
    print(
        f"{loop:8} connection {connection:14} secrets {secrets}: {CALLS / seconds:7.0f}/s, "
        f"{cpu / CALLS * 1e6:4.0f} µs CPU a call = {CALLS / cpu:6.0f}/s and core"
    )


if __name__ == "__main__":
    for loop in ("asyncio", "uvloop"):
        for keep, secrets in ((True, 1), (True, 2), (False, 1)):
            measure(keep, secrets, loop)
