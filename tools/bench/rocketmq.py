"""Sends over RocketMQ's gRPC protocol beside sends over HTTP."""

import asyncio
import hashlib
import hmac
import itertools
import time
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.util import find_spec
from typing import Self, cast

from mqbroker.embedded import commands
from mqbroker.embedded.folder import free_port, why_taken
from mqbroker.rocketmq.protocol.definition_pb2 import Code, Encoding, Message, MessageType, Resource, SystemProperties
from mqbroker.rocketmq.protocol.service_pb2 import SendMessageRequest, SendMessageResponse
from store.messages.ids import new_id
from tools.bench import broker, load
from tools.bench.broker import KEY, Broker
from tools.bench.load import Connection, Measured
from tools.bench.report import Cases, Report
from tools.bench.turns import in_turns, measure

CALLERS = 64
NAME = f"RocketMQ's protocol, {CALLERS} callers"
TOPIC = "orders"
BODY = b"x" * 128
# The package `pygrpc_native` is installed by an extra, so it may be missing.
SERVERS = ("grpcio", "native") if find_spec("pygrpc_native") else ("grpcio",)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
FRAME_HEAD = 9
# A window of flow control that is larger than any run needs.
WIDE = 2**31 - 1 - 65_535
PATH = "/apache.rocketmq.v2.MessagingService/SendMessage"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def headers(**more: str) -> bytes:
    """The HTTP/2 headers of a send, each as an HPACK literal; `more` are additional headers."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": PATH,
        ":authority": "bench",
        "content-type": "application/grpc",
        "te": "trailers",
        **more,
    }
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in fields.items())


def signed() -> dict[str, str]:
    """The headers of a caller, signed once and used for all calls of a run."""
    now = time.strftime("%Y%m%dT%H%M%SZ")
    signature = hmac.new(KEY.encode(), now.encode(), hashlib.sha1).hexdigest()
    given = f"MQv2-HMAC-SHA1 Credential={KEY}, SignedHeaders=x-mq-date-time, Signature={signature}"
    return {"x-mq-client-id": "bench", "x-mq-date-time": now, "authorization": given}


def _text(value: str) -> bytes:
    length, octets = len(value), b""
    if length < 127:
        return bytes((length,)) + value.encode()
    rest = length - 127
    while rest >= 128:
        octets += bytes((rest % 128 + 128,))
        rest //= 128
    return b"\x7f" + octets + bytes((rest,)) + value.encode()


class GrpcConnection(asyncio.Protocol):
    """A connection that calls and waits, as cheap as the HTTP connection: it only reads whether the status of an answer
    is OK.
    """

    def __init__(self) -> None:
        self._received = b""
        self._data = b""
        self._streams = itertools.count(1, 2)
        self._answered: asyncio.Future[bytes] | None = None

    @classmethod
    async def open(cls, port: int) -> Self:
        _, connection = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        window = frame(WINDOW_UPDATE, 0, 0, WIDE.to_bytes(4))
        self._transport.write(PREFACE + frame(SETTINGS, 0, 0, b"") + window)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ConnectionResetError("the broker closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= FRAME_HEAD:
            length = int.from_bytes(self._received[:3])
            if len(self._received) < FRAME_HEAD + length:
                return
            kind, flags = self._received[3], self._received[4]
            payload = self._received[FRAME_HEAD : FRAME_HEAD + length]
            self._received = self._received[FRAME_HEAD + length :]
            self._take(kind, flags, payload)

    def _take(self, kind: int, flags: int, payload: bytes) -> None:
        if kind in (SETTINGS, PING) and not flags & ACK:
            self._transport.write(frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == DATA:
            self._data += payload
        if kind in (DATA, HEADERS) and flags & END_STREAM and self._answered is not None:
            data, self._data = self._data, b""
            self._answered.set_result(data)

    async def send(self, head: bytes, request: bytes) -> bool:
        """Sends a message. Returns whether it was stored."""
        stream = next(self._streams)
        self._answered = asyncio.get_running_loop().create_future()
        message = b"\x00" + len(request).to_bytes(4) + request
        self._transport.write(frame(HEADERS, END_HEADERS, stream, head) + frame(DATA, END_STREAM, stream, message))
        answer = await self._answered
        return SendMessageResponse.FromString(answer[5:]).entries[0].status.code == Code.OK

    def close(self) -> None:
        self._transport.close()


async def over_grpc(port: int, seconds: float) -> Measured:
    """Sends over CALLERS connections; each begins its next send when one is done."""
    head = headers(**signed())

    async def one(connection: GrpcConnection, number: int) -> bool:
        return await connection.send(head, _request())

    return await load.rounds_over([await GrpcConnection.open(port) for _ in range(CALLERS)], None, one, seconds)


def _request() -> bytes:
    system = SystemProperties(
        message_id=f"01{new_id().hex.upper()}",
        message_type=MessageType.NORMAL,
        body_encoding=Encoding.IDENTITY,
        tag="coupons",
        keys=["order-7"],
    )
    message = Message(topic=Resource(name=TOPIC), body=BODY, system_properties=system)
    return SendMessageRequest(messages=[message]).SerializeToString()


async def over_http(port: int, seconds: float) -> Measured:
    """Sends the messages of the RocketMQ case over HTTP, also with an id that the client chose."""

    async def one(connection: Connection, number: int) -> bool:
        message = {"topic": TOPIC, "body": BODY.decode(), "tags": "coupons", "keys": ["order-7"]}
        status, _ = await connection.post("/v1/messages", {**message, "message_id": str(new_id())})
        return status == 201

    return await load.closed_loop(port, CALLERS, None, one, seconds)


def start(running: Broker, server: str) -> int:
    """Starts a process with this kind of gRPC server. Returns its port."""
    port = free_port()
    running.environment["MQBROKER_ROCKETMQ_SERVER"] = server
    running.start(server, commands.rocketmq(port))
    deadline = time.monotonic() + broker.START_SECONDS
    while why_taken(port) is None:
        if time.monotonic() > deadline:
            raise RuntimeError((running.folder / f"{server}.log").read_text()[-2000:])
        time.sleep(0.1)
    return port


def main(report: Report) -> None:
    """Prints the rate of each protocol, and the CPU of the serving process and of PostgreSQL per send."""
    seconds = report.options.seconds
    with broker.running() as running:
        ways = {"HTTP": ("web", partial(over_http, running.port))}
        for server in SERVERS:
            ways[f"gRPC, {server}"] = (server, partial(over_grpc, start(running, server)))
        for _, work in ways.values():
            load.run(work(min(1.0, seconds)))
        sides = {
            way: partial(measure, running, partial(_run, work, seconds), process=process)
            for way, (process, work) in ways.items()
        }
        in_turns(report, NAME, sides, "HTTP")


def _run(work: Callable[[float], Coroutine[None, None, Measured]], seconds: float) -> Measured:
    return load.run(work(seconds))


CASES: Cases = {NAME: main}
