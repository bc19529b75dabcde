"""Crowds: new work waits for a moment before it is begun; while it would wait for longer, it is refused at once."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from tests.broker.databases import writers_halted
from tests.broker.load import Crowd
from tests.broker.polling import PAUSE_SECONDS
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.broker.wire import Wire, problem

# More callers than a process serves in the time for which new work may wait.
CROWD = 3000
REQUESTS = 20
IMPATIENT = QUICK | {"MQBROKER_GROUP_COMMIT_MAX_WAIT_MILLISECONDS": "100"}
TOO_LONG = "Other requests have waited for 0.1 s to be written: nothing was stored, try again in a second."
KEY = f"Authorization: Bearer {API_KEY}\r\n"


@pytest.fixture
def impatient(broker: RunningBroker, tmp_path: Path) -> Iterator[RunningBroker]:
    """Another web process on the same database, in which new work waits for 0.1 s only."""
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(tmp_path, broker.database_url, redis_url, IMPATIENT, tasks=False) as impatient:
        yield impatient


class Caller(asyncio.Protocol):
    """Sends the same request again and again until it is refused; notes each answer."""

    def __init__(self, request: bytes, answers: list[bytes], refused: asyncio.Event) -> None:
        self.request, self.answers, self.refused = request, answers, refused
        self.is_waiting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def send(self) -> None:
        self.is_waiting = True
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.answers.append(data)
        self.is_waiting = False
        if data[9:12] == b"503":
            self.refused.set()
        elif not self.refused.is_set():
            self.send()


async def test_new_work_is_refused_while_other_new_work_has_waited_too_long(
    impatient: RunningBroker, wire: Wire, orders: str
) -> None:
    assert impatient.wire().post("/v1/messages", {"topic": orders, "body": "the first"}).status == 201
    host, _, port = urlsplit(impatient.url).netloc.partition(":")
    message = json.dumps({"topic": orders, "body": "order"}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nHost: broker\r\n{KEY}Content-Length: {len(message)}\r\n\r\n".encode()
    answers, refused, loop = list[bytes](), asyncio.Event(), asyncio.get_running_loop()
    callers = [
        (await loop.create_connection(lambda: Caller(head + message, answers, refused), host, int(port)))[1]
        for _ in range(CROWD)
    ]

    for caller in callers:
        caller.send()
    async with asyncio.timeout(60):
        await refused.wait()
        while any(caller.is_waiting for caller in callers):  # noqa: ASYNC110  # the answers come over the wire
            await asyncio.sleep(PAUSE_SECONDS)
    for caller in callers:
        caller.transport.close()

    statuses = Counter(answer[9:12] for answer in answers)
    assert set(statuses) == {b"201", b"503"}
    refusal = next(answer for answer in answers if answer[9:12] == b"503")
    assert b"retry-after: 1\r\n" in refusal
    assert json.loads(refusal.partition(b"\r\n\r\n")[2]) == problem(503, "system_busy", TOO_LONG)
    queues = wire.get(f"/v1/topics/{orders}").document["offsets"]
    assert sum(queue["max_offset"] for queue in queues) == 1 + statuses[b"201"]


async def test_new_work_that_no_next_batch_would_take_is_refused_instead_of_waiting_for_one(
    broker: RunningBroker, tmp_path: Path, orders: str
) -> None:
    settings = IMPATIENT | {"MQBROKER_GROUP_COMMIT_MAX_REQUESTS": "2"}
    redis_url = broker.environment["REDIS_URL"]
    message = {"topic": orders, "body": "order"}
    with RunningBroker(tmp_path, broker.database_url, redis_url, settings, tasks=False) as slow:
        assert slow.wire().post("/v1/messages", message).status == 201
        async with Crowd(slow.urls) as crowd:
            with writers_halted(slow.database_url):
                sends = [asyncio.create_task(crowd.post("/v1/messages", message)) for _ in range(REQUESTS)]
                async with asyncio.timeout(10):
                    while not any(send.done() and send.result()[0] == 503 for send in sends):
                        sends.append(asyncio.create_task(crowd.post("/v1/messages", message)))
                        await asyncio.wait(sends[-1:], timeout=PAUSE_SECONDS)
            answers = await asyncio.gather(*sends)

    assert TOO_LONG in {document["detail"] for status, document in answers if status == 503}
    assert {status for status, _ in answers} == {201, 503}
