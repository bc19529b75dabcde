"""Requests that never end take a bounded part of memory: of callers without a key next to nothing."""

import asyncio
import base64
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from mqbroker.rocketmq import reading, server
from mqbroker.rocketmq.protocol.service_pb2 import SendMessageRequest, SendMessageResponse
from tests.broker.burdens import resident_bytes, watching
from tests.broker.running import RunningBroker
from tests.rocketmq import unfinished
from tests.rocketmq.conftest import SERVERS, Gateway, running
from tests.rocketmq.stub import SERVICE, Client, message, of_producer
from tests.rocketmq.test_access_of_clients import made_key
from tests.rocketmq.test_transactions_of_clients import begin, question

MIB = 2**20
LARGEST = 4 * MIB + server.HEAD_BYTES
TOO_LATE = 40800


@contextmanager
def worst_of(gateway: Gateway) -> Iterator[list[int]]:
    """The most resident bytes that the process had within the block, beyond those at its begin; filled at its end."""
    found: list[int] = []
    pid = gateway.child.pid
    before = resident_bytes(pid)
    with watching([pid]) as worst:
        yield found
    found.append(max(worst.get(pid, before) - before, 0))


def test_callers_without_a_key_take_next_to_nothing(plain: Gateway, orders: str) -> None:
    with Client(plain.address) as client:
        client.send(message(orders, b"before"))
        with worst_of(plain) as grown:
            sending = threading.Thread(
                target=lambda: asyncio.run(
                    unfinished.sends(plain.address, {}, connections=20, calls=100, size=LARGEST, seconds=4)
                )
            )
            sending.start()
            answered = [client.send(message(orders, b"tea")).status.code for _ in range(20)]
            sending.join()

    assert answered == [20000] * 20
    assert grown[0] < 150 * MIB, f"{grown[0] / MIB:.0f} MiB for 8 GiB that were announced"


def test_a_message_beyond_the_limit_is_not_taken(plain: Gateway) -> None:
    with worst_of(plain) as grown:
        [connection] = asyncio.run(
            unfinished.sends(plain.address, {}, connections=1, calls=1, size=512 * MIB, seconds=2)
        )

    assert connection.ended == {1}
    assert connection.sent < MIB
    assert grown[0] < 50 * MIB


def test_a_key_that_never_ends_its_requests_leaves_turns_to_others(broker: RunningBroker, tmp_path: Path) -> None:
    slow, other = made_key(broker, ["produce:*"]), made_key(broker, ["produce:*"])
    found: list[unfinished.Connection] = []

    def begins(address: str) -> None:
        with Client(address, slow["key"]) as client:
            caller = dict(client.metadata())
        found.extend(asyncio.run(unfinished.sends(address, caller, connections=2, calls=100, size=LARGEST, seconds=9)))

    with (
        running(broker, tmp_path, BODY_READ_SECONDS="4") as gateway,
        Client(gateway.address, other["key"]) as client,
    ):
        client.send(message("turns", b"before"))
        with worst_of(gateway) as grown:
            sending = threading.Thread(target=begins, args=[gateway.address])
            sending.start()
            # Its calls have their turns by then: within the four seconds that these last.
            time.sleep(2)
            began = time.monotonic()
            answered = [client.send(message("turns", b"tea")).status.code for _ in range(5)]
            took = time.monotonic() - began
            sending.join()

    assert answered == [20000] * 5
    assert took < 4, "another key waits for requests that never end"
    assert [len(connection.ended) for connection in found] == [100, 100], "each is refused in the end"
    assert grown[0] < 1.5 * reading.READS_OF_KEY * LARGEST


def test_streams_that_never_end_their_first_command_take_a_bounded_part(broker: RunningBroker, tmp_path: Path) -> None:
    key = made_key(broker, ["metrics"])["key"]
    with (
        running(broker, tmp_path, BODY_READ_SECONDS="2") as gateway,
        Client(gateway.address, key) as client,
        worst_of(gateway) as grown,
    ):
        caller = dict(client.metadata()) | {":path": f"/{SERVICE}/Telemetry"}
        found = asyncio.run(
            unfinished.sends(gateway.address, caller, connections=2, calls=100, size=LARGEST, seconds=8)
        )

    assert [len(connection.ended) for connection in found] == [100, 100], "each is refused in the end"
    assert grown[0] < 1.5 * reading.FIRST_COMMANDS * 5 // 8 * LARGEST


def test_a_request_that_never_ends_is_refused_by_a_code(broker: RunningBroker, tmp_path: Path) -> None:
    release = threading.Event()

    def never() -> Iterator[SendMessageRequest]:
        release.wait(120)
        yield SendMessageRequest()

    with (
        running(broker, tmp_path, BODY_READ_SECONDS="1") as gateway,
        Client(gateway.address) as client,
    ):
        send = client.channel.stream_unary(
            f"/{SERVICE}/SendMessage", SendMessageRequest.SerializeToString, SendMessageResponse.FromString
        )
        try:
            status = send(never(), metadata=client.metadata(), timeout=15).status
        finally:
            release.set()

    assert (status.code, "not complete after 1 seconds" in status.message) == (TOO_LATE, True)


@pytest.mark.parametrize("server", SERVERS)
def test_a_client_that_does_not_take_what_it_is_sent_holds_it_for_a_bounded_time(
    server: str, broker: RunningBroker, tmp_path: Path, orders: str
) -> None:
    with (
        running(broker, tmp_path, ROCKETMQ_SERVER=server, BODY_READ_SECONDS="2") as gateway,
        Client(gateway.address) as slow,
        Client(gateway.address) as other,
    ):
        for _ in range(24):
            other.send(message(orders, bytes(MIB)))
        call = slow.receiving("coupons", orders, timeout=60.0)
        # It is handed its page by then; nothing says so to another client.
        time.sleep(1)

        received = other.all(20, "coupons", orders, wait=20.0)

        call.cancel()
    assert len(received) >= 20, "what had not left for the slow client is offered again"


@pytest.mark.parametrize("server", SERVERS)
def test_a_producer_that_does_not_take_its_checks_is_left_and_another_one_asked(
    server: str, broker: RunningBroker, tmp_path: Path, orders: str
) -> None:
    halves = 12
    with (
        running(broker, tmp_path, ROCKETMQ_SERVER=server, BODY_READ_SECONDS="2") as gateway,
        Client(gateway.address) as slow,
        Client(gateway.address) as other,
        slow.telemetry() as unread,
    ):
        unread.is_told(of_producer(orders))
        with worst_of(gateway) as grown:
            for _ in range(halves):
                begin(slow, orders, bytes(3 * MIB))
            # Memory is watched until the stream has ended, which its client does not read.
            time.sleep(6)
        with other.telemetry() as stream:
            stream.is_told(of_producer(orders))
            asked = {stream.read().recover_orphaned_transaction_command.transaction_id for _ in range(halves)}
        with pytest.raises(grpc.RpcError):
            all(unread.read() for _ in range(halves + 1))

    assert len(asked) == halves
    assert grown[0] < 100 * MIB


def test_compressed_questions_are_unpacked_as_a_producer_takes_them(
    broker: RunningBroker, plain: Gateway, orders: str
) -> None:
    halves, body = 60, bytes(4 * MIB)
    packed = base64.b64encode(zlib.compress(body)).decode()
    half = {"producer_group": orders, "topic": orders, "body_base64": packed, "compression": "zlib"}
    begun = {broker.wire().post("/v1/transactions", half).document["transaction_id"] for _ in range(halves)}
    with Client(plain.address) as client, client.telemetry() as stream, worst_of(plain) as grown:
        stream.is_told(of_producer(orders))
        # All of them are due by then, and wait for their client.
        time.sleep(4)
        asked: set[str] = set()
        while asked != begun:
            found = question(stream)
            assert found.message.body == body
            asked.add(found.transaction_id)

    assert grown[0] < 100 * MIB
    for transaction in begun:
        broker.wire().post(f"/v1/transactions/{transaction}/end", {"producer_group": orders, "state": "ROLLBACK"})


def test_what_grpc_has_packed_is_refused(plain: Gateway, orders: str) -> None:
    """A megabyte of it may be a gigabyte of zeros. Clients pack bodies themselves, which are unpacked in bounds."""
    with Client(plain.address) as client:
        send = client.channel.unary_unary(
            f"/{SERVICE}/SendMessage", SendMessageRequest.SerializeToString, SendMessageResponse.FromString
        )
        request = SendMessageRequest(messages=[message(orders, bytes(64 * MIB))])
        with worst_of(plain) as grown, pytest.raises(grpc.RpcError) as refused:
            send(request, metadata=client.metadata(), timeout=15, compression=grpc.Compression.Gzip)

    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert grown[0] < 30 * MIB
