"""Content codings: bodies of requests that come compressed, and answers that leave so where their caller takes it."""

import gzip
import json
import zlib
from collections.abc import Callable

import pytest
from backports import zstd
from mqbroker_client import Message, Producer

from tests.broker.running import RunningBroker
from tests.broker.wire import Request, Wire, problem

MIB = 1024 * 1024
PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}
UNPACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.decompress, "zstd": zstd.decompress}


@pytest.mark.parametrize("coding", PACK)
@pytest.mark.parametrize("size", [10, 100_000, 4 * MIB])
def test_a_request_may_come_compressed(wire: Wire, orders: str, coding: str, size: int) -> None:
    body = json.dumps({"topic": orders, "body": "x" * size}).encode()

    sent = wire.call("POST", "/v1/messages", PACK[coding](body), {"Content-Encoding": coding})

    assert sent.status == 201
    found = wire.get(f"/v1/messages/{sent.document['message_id']}").document
    assert found["message"]["body"] == "x" * size


@pytest.mark.parametrize("coding", PACK)
def test_a_request_of_the_control_plane_may_come_compressed(wire: Wire, orders: str, coding: str) -> None:
    made = wire.call("PUT", f"/v1/topics/{orders}", PACK[coding](b'{"queues": 7}'), {"Content-Encoding": coding})

    assert (made.status, made.document["queues"]) == (201, 7)


@pytest.mark.parametrize(
    ("path", "limit"), [("/v1/messages", 16 * MIB), ("/v1/bulk", 16 * MIB), ("/v1/topics/orders", 256 * 1024)]
)
@pytest.mark.parametrize("coding", PACK)
def test_a_bomb_is_refused_before_it_is_unpacked(
    broker: RunningBroker, wire: Wire, coding: str, path: str, limit: int
) -> None:
    bomb = PACK[coding](bytes(256 * MIB))
    method = "PUT" if "topics" in path else "POST"

    answer = wire.call(method, path, bomb, {"Content-Encoding": coding})

    assert answer.problem == problem(
        413, "message_too_large", f"The decompressed body has more than {limit} bytes, the limit."
    )


@pytest.mark.parametrize("coding", PACK)
def test_a_stream_that_is_cut_short_or_damaged_is_no_request(wire: Wire, orders: str, coding: str) -> None:
    packed = PACK[coding](json.dumps({"topic": orders, "body": "order"}).encode())

    for spoilt in (packed[:-2], packed + b"x", b"x" + packed, b""):
        answer = wire.call("POST", "/v1/messages", spoilt, {"Content-Encoding": coding})
        assert (answer.status, answer.problem["code"]) == (400, "bad_request")
        assert answer.problem["detail"].startswith(f"The body cannot be decompressed as {coding} (")


def read(request: Request) -> tuple[dict[str, str], bytes]:
    """The headers and the bytes of an answer, as they came."""
    answer = request.connection.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    content = answer.read()
    request.connection.close()
    return headers, content


@pytest.mark.parametrize("coding", UNPACK)
@pytest.mark.parametrize("count", [16, 100])
def test_an_answer_is_compressed_for_a_caller_that_takes_it(
    wire: Wire, producer: Producer, orders: str, coding: str, count: int
) -> None:
    producer.send_batch(orders, [Message(orders, f"{number:02} ".encode() * 1300) for number in range(count)])
    path = f"/v1/messages?topic={orders}&limit={count}"
    plain = wire.ask("GET", path)
    packed = wire.ask("GET", path, headers={"Accept-Encoding": f"br, {coding}"})

    [(plain_headers, expected), (headers, content)] = [read(plain), read(packed)]

    assert "content-encoding" not in plain_headers
    assert (headers["content-encoding"], headers["vary"]) == (coding, "accept-encoding")
    assert UNPACK[coding](content) == expected
    assert len(content) < len(expected) / 5


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("zstd, gzip", "zstd"),
        ("gzip;q=1, zstd;q=0.5", "gzip"),
        ("zstd;q=0, gzip;q=0", None),
        ("gzip;q=nonsense", None),
        ("br", None),
        ("", None),
        ("*", None),
    ],
)
def test_the_caller_chooses_the_coding(
    wire: Wire, producer: Producer, orders: str, accepted: str, coding: str | None
) -> None:
    producer.send_batch(orders, [Message(orders, b"order")] * 1 + [Message(orders, b"order " * 100)] * 1)
    headers, _ = read(wire.ask("GET", f"/v1/messages?topic={orders}", headers={"Accept-Encoding": accepted}))

    assert headers.get("content-encoding") == coding


def test_a_short_answer_and_a_page_leave_as_they_are(wire: Wire) -> None:
    takes = {"Accept-Encoding": "gzip"}

    short, _ = read(wire.ask("GET", "/v1/messages/none", headers=takes))
    page, _ = read(wire.ask("GET", "/console/login/", headers=takes))

    assert "content-encoding" not in short
    assert "content-encoding" not in page


def test_deflate_is_not_understood(wire: Wire) -> None:
    answer = wire.call("POST", "/v1/messages", zlib.compress(b"{}"), {"Content-Encoding": "deflate"})

    assert (answer.status, answer.headers["accept-encoding"]) == (415, "gzip, zstd")
