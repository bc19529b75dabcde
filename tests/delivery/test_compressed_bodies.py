"""Compressed bodies: the producer packs, the broker keeps the bytes, and every reader has the body that was sent."""

import base64
import json
import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from backports import zstd
from mqbroker_client import Broker, Compression, Consumer, Message, Producer
from mqbroker_client.core.compression import MAX_UNPACKED_BYTES, unpacked

from tests.broker import characters
from tests.broker.burdens import WITH_A_KEY_BYTES, burden_of, hold
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document, Wire, problem

MIB = 1024 * 1024
HOSTILE = {
    "a text": ("order é \N{SNOWMAN} " * 1000).encode(),
    "bytes": bytes(range(256)) * 64,
    "zeros": bytes(64 * 1024),
    "control characters": b"\x00\x01\x7f\r\n\t" * 4096,
    "what looks compressed": zlib.compress(b"order " * 100_000) * 40,
    "no UTF-8": b"\xff\xfe" * 8192,
    "JSON": json.dumps([{"order": number, "state": "paid"} for number in range(4000)]).encode(),
    "of 4 MiB": (b"order " * MIB)[: 4 * MIB],
}
PACK: dict[str, Callable[[bytes], bytes]] = {"zlib": zlib.compress, "zstd": zstd.compress}


@pytest.fixture
def producer(broker: RunningBroker) -> Iterator[Producer]:
    """A producer that compresses, as by default."""
    with Broker(broker.url, API_KEY) as packing:
        yield Producer(packing, characters.name("orders"))


def in_json(topic: str, method: str, packed: bytes) -> Document:
    return {"topic": topic, "body_base64": base64.b64encode(packed).decode(), "compression": method}


@pytest.mark.parametrize("method", ["zlib", "zstd"])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_a_body_that_the_client_compresses_is_received_as_it_was_sent(
    broker: RunningBroker, consumer: Consumer, orders: str, method: str, body: bytes
) -> None:
    with closing(Broker(broker.url, API_KEY, compression=Compression(method))) as packing:  # type: ignore[arg-type]  # a parameter
        producer = Producer(packing, characters.name("orders"))
        producer.send(orders, body)
        producer.begin(orders, body).commit()
        producer.send_batch(orders, [Message(orders, body)])

    found = consumer.receive(orders, wait_seconds=5)
    while len(found) < 3:
        found += consumer.receive(orders, wait_seconds=5)

    assert [delivery.body for delivery in found] == [body] * 3


def test_a_long_body_is_compressed_and_a_short_one_goes_as_it_is(wire: Wire, producer: Producer, orders: str) -> None:
    producer.send(orders, b"x" * 4095, keys="short")
    producer.send(orders, b"x" * 4096, keys="long")

    [short] = wire.get(f"/v1/messages?topic={orders}&key=short").document["results"]
    [long] = wire.get(f"/v1/messages?topic={orders}&key=long").document["results"]

    assert short["message"]["body"] == "x" * 4095
    assert long["message"]["compression"] == "zlib"
    assert len(long["message"]["body_base64"]) < 100


def test_what_becomes_no_shorter_goes_as_it_is(wire: Wire, producer: Producer, orders: str) -> None:
    body = secrets.token_bytes(8192)

    producer.send(orders, body, keys="packed")

    [found] = wire.get(f"/v1/messages?topic={orders}&key=packed").document["results"]
    assert "compression" not in found["message"]
    assert base64.b64decode(found["message"]["body_base64"]) == body


@pytest.mark.parametrize("method", PACK)
def test_the_broker_keeps_and_hands_out_the_bytes_as_they_are(wire: Wire, orders: str, method: str) -> None:
    packed = PACK[method](b"order " * 1000)
    assert wire.post("/v1/messages", in_json(orders, method, packed)).status == 201

    received = wire.post("/v1/consumer-groups/coupons/receive", {"topic": orders}).document["messages"]

    [message] = [one["message"] for one in received]
    assert (message["compression"], base64.b64decode(message["body_base64"])) == (method, packed)


@pytest.mark.parametrize("method", PACK)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/batch", "/v1/transactions", "/v1/bulk"])
@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda packed: packed[:-3], "the stream is cut short"),
        (lambda packed: packed + b"more", "there are bytes behind the end of the stream"),
        (lambda packed: b"order" + packed, ""),
    ],
    ids=["cut short", "with more behind it", "damaged"],
)
def test_a_body_that_cannot_be_unpacked_is_refused_where_it_is_sent(
    wire: Wire, orders: str, method: str, path: str, spoil: Callable[[bytes], bytes], why: str
) -> None:
    message = in_json(orders, method, spoil(PACK[method](b"order " * 1000)))

    refusal = refused(wire, path, message)

    assert (refusal["status"], refusal["code"]) == (422, "message_illegal")
    assert refusal["detail"].startswith(f"body_base64 cannot be decompressed with {method} ({why}")
    assert wire.get(f"/v1/topics/{orders}").status == 404


def refused(wire: Wire, path: str, message: Document) -> Document:
    """The refusal of a message by one of the ways to send it."""
    if path == "/v1/bulk":
        [found] = wire.bulk({"op": "send", **message})
        return found
    of_path = {
        "/v1/messages": message,
        "/v1/messages/batch": {"messages": [message]},
        "/v1/transactions": {**message, "producer_group": "orders"},
    }
    return wire.post(path, of_path[path]).problem


# Blocks that unpack to nothing: of zlib such as are read slowest, a table of codes for each. 4 MiB took 0.5 s at once.
EMPTY_BLOCKS = {
    "zlib": b"\x78\x9c"
    + bytes.fromhex("04c081000000000090ff6b100007020000000040feaf41001c080000000000f9bf060170200000000000e4ff1a")
    * 20_000,
    "zstd": b"\x28\xb5\x2f\xfd\x00\x38" + bytes(1_000_000),
}


@pytest.mark.parametrize("method", PACK)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/batch", "/v1/transactions", "/v1/bulk"])
def test_a_body_that_is_longer_packed_than_unpacked_is_refused(wire: Wire, orders: str, method: str, path: str) -> None:
    refusal = refused(wire, path, in_json(orders, method, EMPTY_BLOCKS[method]))

    assert (refusal["status"], refusal["code"]) == (422, "message_illegal")
    assert "its first 131072 bytes unpack to 0" in refusal["detail"]


@pytest.mark.parametrize("method", PACK)
@pytest.mark.parametrize("path", ["/v1/messages/batch", "/v1/transactions", "/v1/bulk"])
def test_the_bodies_of_one_request_are_unpacked_up_to_a_limit_together(
    wire: Wire, orders: str, method: str, path: str
) -> None:
    """700 of them, each of 6 kB and within the limit of a message, were 20 s of work for half a core."""
    one = in_json(orders, method, PACK[method](bytes(4 * MIB)))
    if path == "/v1/bulk":
        found = wire.bulk(*[{"op": "send", **one}] * 40)
        stored = [each["status"] for each in found].index(503)
        assert [each["status"] for each in found] == [201] * stored + [503] * (40 - stored)
        # What is tried in the event loop and found to be long counts, too.
        assert 15 <= stored <= 16
        assert "send this message again" in found[-1]["detail"]
        return
    request = {"messages": [one] * 40} | ({"producer_group": "orders"} if path == "/v1/transactions" else {})

    refusal = wire.post(path, request).problem

    assert (refusal["status"], refusal["code"]) == (413, "message_too_large")
    assert "67108864 bytes together" in refusal["detail"]


@pytest.mark.parametrize("method", PACK)
def test_batches_of_bodies_that_unpack_to_very_much_leave_others_their_time(
    broker: RunningBroker, wire: Wire, orders: str, method: str
) -> None:
    one = in_json(orders, method, PACK[method](bytes(4 * MIB)))
    statuses: list[int] = []

    def send_batches() -> None:
        statuses.extend(wire.post("/v1/messages/batch", {"messages": [one] * 700}).status for _ in range(5))

    hold(burden_of(broker, send_batches), WITH_A_KEY_BYTES)

    assert statuses == [413] * 5


@pytest.mark.parametrize("method", PACK)
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/batch", "/v1/transactions", "/v1/bulk"])
def test_a_bomb_is_too_large_before_it_has_taken_memory(
    broker: RunningBroker, wire: Wire, orders: str, method: str, path: str
) -> None:
    bomb = PACK[method](bytes(256 * MIB))
    before = peak_from_now(broker)

    refusal = refused(wire, path, in_json(orders, method, bomb))

    assert len(bomb) < MIB
    assert (refusal["status"], refusal["code"]) == (413, "message_too_large")
    assert refusal["detail"] == "The decompressed body has more than 4194304 bytes, the limit."
    assert peak(broker) - before < 12 * MIB


def peak_from_now(broker: RunningBroker) -> int:
    """The memory of the web process in bytes, from which its peak is counted anew."""
    Path(f"/proc/{broker.webs[0].pid}/clear_refs").write_text("5")
    return peak(broker)


def peak(broker: RunningBroker) -> int:
    """The most memory that the web process had, in bytes."""
    lines = Path(f"/proc/{broker.webs[0].pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def test_only_bytes_in_base64_are_compressed(wire: Wire, orders: str) -> None:
    answer = wire.post("/v1/messages", {"topic": orders, "body": "order", "compression": "zlib"})

    assert answer.problem == problem(
        422,
        "message_illegal",
        "compression is only allowed with body_base64: give the compressed bytes in body_base64.",
    )


def test_a_compressed_message_that_is_sent_again_is_stored_once(wire: Wire, orders: str) -> None:
    message = in_json(orders, "zlib", zlib.compress(b"order " * 1000)) | {"message_id": str(uuid4())}

    answers = [wire.post("/v1/messages", message) for _ in range(2)]

    assert [answer.status for answer in answers] == [201, 200]


def test_a_check_brings_the_body_as_it_was_sent(
    broker: RunningBroker, producer: Producer, endpoint: ProducerEndpoint, orders: str
) -> None:
    characters.register(broker, producer.group, endpoint.url)
    body = b"order " * 2000
    producer.begin(orders, body, check_immunity_seconds=0)

    eventually(lambda: endpoint.asked)

    [asked] = endpoint.asked[:1]
    [transaction] = asked.document["transactions"]
    assert unpacked(transaction["compression"], base64.b64decode(transaction["body_base64"])) == body


def test_the_client_unpacks_no_bomb() -> None:
    bomb = zlib.compress(bytes(MAX_UNPACKED_BYTES + 1))

    with pytest.raises(ValueError, match=f"more than {MAX_UNPACKED_BYTES} bytes"):
        unpacked("zlib", bomb)


def test_a_compression_that_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match="there is no compression 'lz4': zlib and zstd are known"):
        Compression("lz4")  # type: ignore[arg-type]  # what the message is about
    with pytest.raises(ValueError, match="compressed by lz4, which this version does not know"):
        unpacked("lz4", b"order")
