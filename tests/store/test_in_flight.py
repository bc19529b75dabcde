"""Bytes in flight: what callers hold of a web process's memory is bounded, and unfinished bodies come to an end."""

import asyncio
import gzip
import http.client
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.broker import characters
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.broker.wire import Answer, Document, Wire, problem

MEBIBYTE = 1024 * 1024
# Of a body that says it has 2.5 MB, all but the last byte.
ANNOUNCED = 2_500_000
CHUNK = 100_000
CALLERS = 1000
# What a web process may hold of all callers' bodies. Beside it the server reads 64 KiB of each ahead, and a connection
# has its task and buffers: at most 85 KiB in all were measured in a process that had just started.
BUDGET = 32 * MEBIBYTE
CALLER = 96 * 1024
TOO_LATE = "The body did not arrive completely within 2 seconds: nothing was stored, send the request again."
KEY = f"Authorization: Bearer {API_KEY}\r\n"


@pytest.fixture(scope="module")
def quick(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A web process that gives a body two seconds."""
    settings = QUICK | {"MQBROKER_BODY_READ_SECONDS": "2"}
    folder = tmp_path_factory.mktemp("quick")
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(folder, broker.database_url, redis_url, settings, tasks=False) as quick:
        yield quick


def head_of(path: str, headers: str, size: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: broker\r\nContent-Length: {size}\r\n{headers}\r\n".encode()


@asynccontextmanager
async def calling(broker: RunningBroker) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    place = urlsplit(broker.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def unfinished(broker: RunningBroker, path: str, headers: str, size: int) -> int:
    """Sends all of a body but its end; returns the status once the broker has closed the connection, 0 for a reset."""
    async with calling(broker) as (reader, writer):
        answer = asyncio.create_task(reader.read())
        with suppress(ConnectionError):
            writer.write(head_of(path, headers, size))
            for start in range(0, size - 1, CHUNK):
                writer.write(b"x" * min(CHUNK, size - 1 - start))
                await writer.drain()
        with suppress(ConnectionError):
            return int((await answer)[9:12] or 0)
        return 0


def resident_bytes(broker: RunningBroker) -> int:
    """Of the web process and its workers."""
    group = str(broker.webs[0].pid)
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "stat").read_text().rpartition(")")[2].split()[2] == group:
                total += int((process / "statm").read_text().split()[1]) * 4096
        except (FileNotFoundError, ProcessLookupError):  # ended before or while it was read
            continue
    return total


async def highest_resident_bytes(broker: RunningBroker) -> int:
    """Until it is cancelled."""
    highest = 0
    try:
        while True:
            highest = max(highest, await asyncio.to_thread(resident_bytes, broker))
            await asyncio.sleep(0.2)
    except asyncio.CancelledError:
        return highest


async def statuses_of(broker: RunningBroker, calls: list[tuple[str, str, int]]) -> list[int]:
    """What unfinished calls at once are answered. They end soon, and hold little of the broker's memory meanwhile."""
    before = resident_bytes(broker)
    watch = asyncio.create_task(highest_resident_bytes(broker))
    began = time.monotonic()

    statuses = await asyncio.gather(*(unfinished(broker, *call) for call in calls))

    took = time.monotonic() - began
    watch.cancel()
    assert took < at_this_load(30)
    assert (await watch) - before < BUDGET + CALLERS * CALLER
    assert broker.wire().get("/v1/topics").status == 200
    return statuses


async def test_a_thousand_bodies_that_are_refused_by_their_heads_hold_little_and_end_soon(quick: RunningBroker) -> None:
    refused = {
        ("/v1/messages", "", ANNOUNCED): 401,
        ("/v1/topics/zz", "", ANNOUNCED): 401,
        ("/v1/nothing", "", ANNOUNCED): 401,
        ("/docs", "Cookie: sessionid=guessed\r\n", ANNOUNCED): 401,
        ("/console/login/", "", ANNOUNCED): 413,
        ("/v1/topics/zz", KEY, ANNOUNCED): 413,
    }
    # The sixth part of the callers would hold four times what is allowed to all of them.
    calls = list(refused) * (CALLERS // len(refused))

    answers = Counter(zip(calls, await statuses_of(quick, calls), strict=True))

    # Some are reset before they read their answer: they are too many to let each send on. Of which kind is by chance.
    read = {(call, status) for call, status in answers if status}
    assert set() < read <= set(refused.items())
    assert {call: await unfinished(quick, *call) for call in refused} == refused


@pytest.mark.parametrize(
    ("path", "headers", "size"),
    [("/console/login/", "", 60_000), ("/v1/topics/zz", KEY, 200_000), ("/v1/messages", KEY, ANNOUNCED)],
)
async def test_a_thousand_unfinished_bodies_hold_little_and_end_soon(
    quick: RunningBroker, path: str, headers: str, size: int
) -> None:
    answers = Counter(await statuses_of(quick, [(path, headers, size)] * CALLERS))

    # Of the rest some are reset before they read their answer: they are too many to let each send on. So may be the few
    # whose bodies had room, and whose 408 comes last; `test_a_body_that_does_not_come_is_given_up` holds that one.
    assert {503} <= set(answers) - {0} <= {408, 503}


def test_a_body_that_does_not_come_is_given_up(quick: RunningBroker, orders: str) -> None:
    with http_call(quick, "/v1/messages", 100, KEY, b'{"topic": ') as connection:
        answer = answer_on(connection)

        assert answer == (408, problem(408, "request_timeout", TOO_LATE))
        # The connection is of no use any more: what may still come on it is no request.
        assert connection.recv(1) == b""


def test_a_refused_caller_that_sends_on_reads_its_answer(broker: RunningBroker) -> None:
    stranger = Wire(broker.url, "mq_unknown")

    answers = [stranger.post("/v1/messages", {"topic": "orders", "body": "x" * 4 * MEBIBYTE}) for _ in range(10)]

    assert {answer.status for answer in answers} == {401}
    assert answers[0].problem["code"] == "unauthenticated"


def test_a_full_budget_refuses_large_bodies_and_takes_small_ones(
    broker: RunningBroker, tmp_path: Path, orders: str
) -> None:
    settings = QUICK | {"MQBROKER_REQUESTS_IN_FLIGHT_BYTES": "4000000", "MQBROKER_BODY_READ_SECONDS": "60"}
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(tmp_path, broker.database_url, redis_url, settings, tasks=False) as narrow:
        # An attempt fails when the first body has not arrived before the second: then it is the one that is refused.
        *refused, taken = eventually(lambda: beside_an_unfinished_body(narrow, orders))

        for answer in refused:
            assert answer.headers["retry-after"] == "1"
            assert answer.problem["code"] == "system_busy"
            assert answer.problem["detail"].endswith("bytes of memory: nothing was stored, try again in a second.")
        assert taken.status == 201
        # The caller has hung up, and its bytes are free again.
        eventually(lambda: large(narrow, orders).status == large(narrow, orders, packed=True).status == 201)


def test_a_request_whose_large_answer_leaves_compressed_gives_its_bytes_back(
    broker: RunningBroker, tmp_path: Path
) -> None:
    acks = json.dumps({"receipt_handles": ["x" * 43] * 1000}).encode()
    redis_url, settings = broker.environment["REDIS_URL"], {"MQBROKER_REQUESTS_IN_FLIGHT_BYTES": "100000"}
    with RunningBroker(tmp_path, broker.database_url, redis_url, settings, tasks=False) as narrow:
        group, wire = "/v1/consumer-groups/compressed", narrow.wire()
        wire.call("PUT", group, b"{}")

        answers = []
        for _ in range(5):
            asked = wire.ask("POST", f"{group}/ack", acks, {"Accept-Encoding": "gzip"})
            answer = asked.connection.getresponse()
            answers.append((answer.status, answer.headers["Content-Encoding"]))
            asked.connection.close()

    assert answers == [(200, "gzip")] * 5


def beside_an_unfinished_body(broker: RunningBroker, topic: str) -> tuple[Answer, Answer, Answer] | None:
    """A large send, a packed one that is large when it is unpacked, and a small one, while another caller holds 3.3 MB;
    None when that one did not get so far."""
    with http_call(broker, "/v1/messages", 3_400_000, KEY, b" " * 3_300_000):
        large_one, packed_one = large(broker, topic), large(broker, topic, packed=True)
        small_one = broker.wire().post("/v1/messages", {"topic": topic, "body": "1"})
    return (large_one, packed_one, small_one) if large_one.status == 503 else None


def large(broker: RunningBroker, topic: str, *, packed: bool = False) -> Answer:
    body = json.dumps({"topic": topic, "body": "x" * 400_000}).encode()
    if packed:
        return broker.wire().call("POST", "/v1/messages", gzip.compress(body), {"Content-Encoding": "gzip"})
    return broker.wire().call("POST", "/v1/messages", body)


@contextmanager
def http_call(broker: RunningBroker, path: str, size: int, headers: str, body: bytes) -> Iterator[socket.socket]:
    place = urlsplit(broker.url)
    assert place.hostname
    assert place.port
    with socket.create_connection((place.hostname, place.port), timeout=120) as connection:
        connection.sendall(head_of(path, headers, size) + body)
        yield connection


def answer_on(connection: socket.socket) -> tuple[int, Document]:
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, json.loads(answer.read())


@pytest.mark.parametrize(
    ("path", "scopes", "detail"),
    [
        ("/v1/messages", ["metrics"], "has no produce scope: add one at /v1/api-keys."),
        ("/v1/bulk", ["metrics", "read:*"], "has no produce or consume or manage scope: add one at /v1/api-keys."),
        ("/v1/consumer-groups/c/receive", ["produce:*"], "has no consume scope: add one at /v1/api-keys."),
        ("/v1/discarded/x/resume", ["produce:*"], "has no manage scope: add one at /v1/api-keys."),
        ("/v1/topics/zz", ["metrics"], "lacks the scope manage: add it at /v1/api-keys."),
    ],
)
def test_a_body_of_a_key_that_may_do_nothing_with_it_is_not_waited_for(
    quick: RunningBroker, path: str, scopes: list[str], detail: str
) -> None:
    name = characters.name("narrow")
    key = quick.wire().post("/v1/api-keys", {"name": name, "scopes": scopes}).document["key"]

    with http_call(quick, path, 100_000, f"Authorization: Bearer {key}\r\n", b"{") as connection:
        status, document = answer_on(connection)

    assert (status, document) == (403, problem(403, "no_permission", f"The key '{name}' {detail}"))
