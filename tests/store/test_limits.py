"""Limits: what is too much is refused at once, and stores nothing."""

import asyncio
import base64
import http.client
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mqbroker_client import Consumer

from tests.broker.characters import bodies
from tests.broker.databases import writers_halted
from tests.broker.load import Crowd
from tests.broker.polling import PAUSE_SECONDS
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Document, Wire, problem

MEBIBYTE = 1024 * 1024
REQUESTS = 20
# Of a request with one message: 4 MiB of text in base64 whose characters are all escaped, and its other fields.
LONGEST = 8 * 4 * MEBIBYTE + 160 * 1024
# The longest JSON of bodies that may be stored, and the request fields that hold them.
KEY = f"Authorization: Bearer {API_KEY}\r\n"
ENCODINGS: dict[str, tuple[str, Callable[[int], str]]] = {
    "escapes": ("body", lambda size: "\\u0041" * size),
    "surrogate pairs": ("body", lambda size: "\\ud83d\\ude00" * (size // 4)),
    "newlines": ("body", lambda size: "\\n" * size),
    "base64": ("body_base64", lambda size: base64.b64encode(b"\xfb\xef\xbe" * (size // 3)).decode()),
    "escaped base64": ("body_base64", lambda size: "\\u002b" * (size // 3 * 4)),
}


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


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("order", r"\d+ requests already wait to be written"),
        ("x" * 400_000, r"Requests that wait to be written fill \d+ bytes, the limit"),
    ],
)
async def test_what_cannot_wait_any_more_is_refused_at_once_and_not_stored(
    narrow: RunningBroker, consumer: Consumer, orders: str, body: str, reason: str
) -> None:
    narrow.wire().post("/v1/messages", {"topic": orders, "body": "the first"})
    async with Crowd(narrow.urls) as crowd:
        message = {"topic": orders, "body": body}
        with writers_halted(narrow.database_url):
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


async def test_an_end_is_taken_in_while_new_messages_are_refused(
    broker: RunningBroker, tmp_path: Path, consumer: Consumer, orders: str
) -> None:
    settings = QUICK | {"MQBROKER_GROUP_COMMIT_MAX_WAITING": "8"}
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(tmp_path, broker.database_url, redis_url, settings, tasks=False) as crowded:
        half = {"topic": orders, "body": "paid", "producer_group": orders, "transaction_id": new_id()}
        assert crowded.wire().post("/v1/transactions", half).status == 201
        end = {"producer_group": orders, "state": "COMMIT"}
        async with Crowd(crowded.urls) as crowd:
            with writers_halted(crowded.database_url):
                message = {"topic": orders, "body": "order"}
                sends = [asyncio.create_task(crowd.post("/v1/messages", message)) for _ in range(REQUESTS)]
                # Seven of the eight places are for new messages, and are taken when one of these is refused.
                async with asyncio.timeout(10):
                    refused = [await refusal for refusal in firsts(sends, 1)]
                ended = asyncio.create_task(crowd.post(f"/v1/transactions/{half['transaction_id']}/end", end))
                # A refusal would come at once.
                await asyncio.wait((ended,), timeout=0.3)
            status, _ = await ended
            await asyncio.gather(*sends)

    assert ([status for status, _ in refused], status) == ([503], 200)
    assert b"paid" in bodies(received_until_empty(consumer, orders))


@pytest.mark.parametrize("pause_seconds", [0, PAUSE_SECONDS])
async def test_a_caller_that_is_refused_for_what_waits_keeps_its_connection(
    narrow: RunningBroker, orders: str, pause_seconds: float
) -> None:
    place = urlsplit(narrow.url)
    message = json.dumps({"topic": orders, "body": "order"}).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nHost: broker\r\n{KEY}Content-Length: {len(message)}\r\n\r\n".encode()
    narrow.wire().post("/v1/messages", {"topic": orders, "body": "the first"})
    async with Crowd(narrow.urls) as crowd:
        with writers_halted(narrow.database_url):
            sends: list[asyncio.Task[tuple[int, Document]]] = []
            async with asyncio.timeout(10):
                # What is taken of the first crowd leaves its places for a batch; the second crowd fills them again.
                for _ in range(2):
                    more = {"topic": orders, "body": "x"}
                    now = [asyncio.create_task(crowd.post("/v1/messages", more)) for _ in range(REQUESTS)]
                    for refusal in firsts(now, REQUESTS - 2 * 4):
                        await refusal
                    sends += now
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
                answers = []
                for _ in range(3):
                    writer.write(head)
                    # Many callers send a body in a packet of its own.
                    await asyncio.sleep(pause_seconds)
                    writer.write(message)
                    answers.append(await reader.readuntil(b"}"))
        writer.close()
        await asyncio.gather(*sends)

    assert [answer[9:12] for answer in answers] == [b"503"] * 3
    assert [answer for answer in answers if b"retry-after: 1\r\n" not in answer or b"connection: close" in answer] == []


def test_a_refusal_for_the_crowd_says_when_to_come_again(narrow: RunningBroker, orders: str) -> None:
    operations = [{"op": "send", "topic": orders, "body": "order"} for _ in range(REQUESTS)]

    results = narrow.wire().bulk(*operations)

    refused = [result for result in results if result["status"] == 503]
    assert refused[0] == problem(
        503, "system_busy", "4 requests already wait to be written: nothing was stored, try again in a second."
    )


def test_a_body_may_have_4_mebibytes_and_no_more(wire: Wire, orders: str) -> None:
    largest = wire.post("/v1/messages", {"topic": orders, "body": "x" * (4 * MEBIBYTE)})
    larger = wire.post("/v1/messages", {"topic": orders, "body": "x" * (4 * MEBIBYTE + 1)})

    assert largest.status == 201
    assert larger.problem == problem(413, "message_too_large", "The body has 4194305 bytes, the limit is 4194304.")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_4_mebibytes_are_taken_however_they_are_encoded(wire: Wire, orders: str, encoding: str) -> None:
    field, encoded = ENCODINGS[encoding]
    body = f'{{"topic": "{orders}", "{field}": "{encoded(4 * MEBIBYTE)}"}}'.encode()

    assert wire.call("POST", "/v1/messages", body).status == 201


@pytest.mark.parametrize("field", ["body", "body_base64"])
def test_one_byte_more_is_refused_however_it_is_encoded(wire: Wire, orders: str, field: str) -> None:
    size = 4 * MEBIBYTE + 2  # a multiple of three
    encoded = ENCODINGS["escapes" if field == "body" else "escaped base64"][1](size)
    body = f'{{"topic": "{orders}", "{field}": "{encoded}"}}'.encode()

    answer = wire.call("POST", "/v1/messages", body)

    assert answer.problem == problem(413, "message_too_large", f"The body has {size} bytes, the limit is 4194304.")
    assert wire.get(f"/v1/topics/{orders}").status == 404


@pytest.mark.parametrize("path", ["/v1/messages/batch", "/v1/transactions"])
def test_messages_together_are_held_to_their_decoded_bytes(wire: Wire, orders: str, path: str) -> None:
    fields = {"topic": orders, "keys": ["k" * 100] * 10, "properties": {f"name{n}": "x" * 100 for n in range(120)}}
    count = 128
    body = "\x01" * (4 * MEBIBYTE // count)
    messages: list[Document] = [{**fields, "message_id": new_id(), "body": body} for _ in range(count)]
    whose = {"producer_group": orders} if path == "/v1/transactions" else {}

    whole = wire.post(path, {**whose, "messages": messages})
    messages[0]["body"] = body + "x"
    one_more = wire.post(path, {**whose, "messages": messages})

    assert whole.status == 201
    assert one_more.problem == problem(
        413, "message_too_large", "The bodies have 4194305 bytes together, the limit is 4194304."
    )


def test_each_operation_of_a_bulk_may_have_4_mebibytes(wire: Wire, orders: str) -> None:
    results = wire.bulk(*[{"op": "send", "topic": orders, "body": "\n" * (4 * MEBIBYTE)} for _ in range(3)])

    assert [result["status"] for result in results] == [201] * 3


def test_a_key_that_cannot_be_indexed_is_refused_and_spoils_no_other_message(wire: Wire, orders: str) -> None:
    key = "".join(random.Random(1).choices(string.ascii_letters, k=16_000))
    send = {"op": "send", "topic": orders, "body": "order"}
    half = {**send, "op": "half", "producer_group": orders}

    results = wire.bulk(send, {**send, "keys": [key]}, {**half, "keys": [key]}, half, {**send, "keys": [key[:2600]]})

    assert [result["status"] for result in results] == [201, 422, 422, 201, 201]
    assert {result["code"] for result in results[1:3]} == {"properties_too_large"}


def new_id() -> str:
    return str(uuid.uuid4())


def test_a_request_that_announces_too_much_is_refused_before_it_is_read(broker: RunningBroker) -> None:
    connection = http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=120)
    connection.putrequest("POST", "/v1/messages")
    connection.putheader("Authorization", f"Bearer {API_KEY}")
    connection.putheader("Content-Length", str(40 * MEBIBYTE))

    connection.endheaders()

    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (
        413,
        problem(413, "message_too_large", f"The request has {40 * MEBIBYTE} bytes, the limit is {LONGEST}."),
    )
    connection.close()


def test_a_request_that_grows_too_large_is_refused(broker: RunningBroker) -> None:
    connection = http.client.HTTPConnection(urlsplit(broker.url).netloc, timeout=120)
    connection.request(
        "POST",
        "/v1/messages",
        iter([b"x" * (LONGEST // 4 + 1)] * 4),
        {"Authorization": f"Bearer {API_KEY}"},
        encode_chunked=True,
    )

    answer = connection.getresponse()

    assert (answer.status, json.loads(answer.read())) == (
        413,
        problem(413, "message_too_large", f"The request has more than {LONGEST} bytes, the limit."),
    )
    connection.close()


def firsts(
    tasks: list[asyncio.Task[tuple[int, Document]]], count: int
) -> Iterator[asyncio.Future[tuple[int, Document]]]:
    """The answers that come first."""
    for _, answer in zip(range(count), asyncio.as_completed(tasks), strict=False):
        yield answer


def refuses_for(detail: str, reason: str) -> bool:
    return re.fullmatch(rf"{reason}: nothing was stored, try again in a second\.", detail) is not None
