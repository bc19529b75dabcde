"""Limits: what is too much is refused at once, and stores nothing."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from mqbroker_client import Consumer

from store.log import APPENDERS_LOCK
from tests.broker.load import Crowd
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Document, Wire, problem

MEBIBYTE = 1024 * 1024
REQUESTS = 20


@pytest.fixture(scope="module")
def narrow(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Another web process on the same database, which lets little wait."""
    settings = QUICK | {
        "MQBROKER_GROUP_COMMIT_MAX_WAITING": "4",
        "MQBROKER_GROUP_COMMIT_MAX_WAITING_BYTES": "1000000",
        "MQBROKER_MAX_MESSAGE_BYTES": "500000",
    }
    folder = tmp_path_factory.mktemp("narrow")
    with RunningBroker(folder, broker.database_url, broker.environment["REDIS_URL"], settings, tasks=False) as narrow:
        yield narrow


@contextmanager
def writers_halted(broker: RunningBroker) -> Iterator[None]:
    """Holds alone the lock that every writer of the log shares, as the roll of a segment does for a moment."""
    with psycopg.connect(broker.database_url) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [APPENDERS_LOCK])
        yield


@pytest.mark.parametrize(
    ("body", "reason"), [("order", "requests wait to be written"), ("x" * 400_000, "bytes wait to be written")]
)
async def test_what_cannot_wait_any_more_is_refused_at_once_and_not_stored(
    narrow: RunningBroker, consumer: Consumer, orders: str, body: str, reason: str
) -> None:
    narrow.wire().post("/v1/messages", {"topic": orders, "body": "the first"})
    async with Crowd(narrow.urls) as crowd:
        message = {"topic": orders, "body": body}
        with writers_halted(narrow):
            sends = [asyncio.create_task(crowd.post("/v1/messages", message)) for _ in range(REQUESTS)]
            # Refused while nothing can be written: what waits is at most what is allowed, beside the batch under way.
            async with asyncio.timeout(10):
                refused = [await refusal for refusal in firsts(sends, REQUESTS - 2 * 4)]
        answers = await asyncio.gather(*sends)

    assert {status for status, _ in refused} == {503}
    details = {document["detail"] for status, document in answers if status == 503}
    assert [detail for detail in details if not refuses_for(detail, reason)] == []
    stored = [status for status, _ in answers if status == 201]
    assert len(received_until_empty(consumer, orders)) == 1 + len(stored)


def test_a_refusal_for_the_crowd_says_when_to_come_again(narrow: RunningBroker, orders: str) -> None:
    operations = [{"op": "send", "topic": orders, "body": "order"} for _ in range(REQUESTS)]

    results = narrow.wire().bulk(*operations)

    refused = [result for result in results if result["status"] == 503]
    assert refused[0] == problem(
        503, "system_busy", "4 requests wait to be written: nothing was stored, try again in a second."
    )


def test_a_body_may_have_4_mebibytes_and_no_more(wire: Wire, orders: str) -> None:
    largest = wire.post("/v1/messages", {"topic": orders, "body": "x" * (4 * MEBIBYTE)})
    larger = wire.post("/v1/messages", {"topic": orders, "body": "x" * (4 * MEBIBYTE + 1)})

    assert largest.status == 201
    assert larger.problem == problem(413, "message_too_large", "The body has 4194305 bytes, the limit is 4194304.")


def test_a_request_that_announces_too_much_is_refused_before_it_is_read(broker: RunningBroker) -> None:
    connection = http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=30)
    connection.putrequest("POST", "/v1/messages")
    connection.putheader("Authorization", f"Bearer {API_KEY}")
    connection.putheader("Content-Length", str(6 * MEBIBYTE))

    connection.endheaders()

    answer = connection.getresponse()
    limit = 4 * MEBIBYTE * 4 // 3 + 256 * 1024
    assert (answer.status, json.loads(answer.read())) == (
        413,
        problem(413, "message_too_large", f"The request has {6 * MEBIBYTE} bytes, the limit is {limit}."),
    )
    connection.close()


def test_a_request_that_grows_too_large_is_refused(broker: RunningBroker) -> None:
    connection = http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=30)
    limit = 4 * MEBIBYTE * 4 // 3 + 256 * 1024
    connection.request(
        "POST",
        "/v1/messages",
        iter([b"x" * (limit // 4 + 1)] * 4),
        {"Authorization": f"Bearer {API_KEY}"},
        encode_chunked=True,
    )

    answer = connection.getresponse()

    assert (answer.status, json.loads(answer.read())) == (
        413,
        problem(413, "message_too_large", f"The request has more than {limit} bytes, the limit."),
    )
    connection.close()


def firsts(
    tasks: list[asyncio.Task[tuple[int, Document]]], count: int
) -> Iterator[asyncio.Future[tuple[int, Document]]]:
    """The answers that come first."""
    for _, answer in zip(range(count), asyncio.as_completed(tasks), strict=False):
        yield answer


def refuses_for(detail: str, reason: str) -> bool:
    number, _, rest = detail.partition(" ")
    return number.isdigit() and rest == f"{reason}: nothing was stored, try again in a second."
