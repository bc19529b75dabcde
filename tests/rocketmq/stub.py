"""A client of the protocol with nothing of its own: each call as a test words it."""

import hashlib
import hmac
import itertools
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import grpc
from google.protobuf.duration_pb2 import Duration

from mqbroker.rocketmq.protocol import service_pb2
from mqbroker.rocketmq.protocol.definition_pb2 import (
    Address,
    AddressScheme,
    ClientType,
    Encoding,
    Endpoints,
    FilterExpression,
    FilterType,
    Message,
    MessageQueue,
    MessageType,
    Publishing,
    Resource,
    Settings,
    Subscription,
    SystemProperties,
    TransactionResolution,
    TransactionSource,
)
from mqbroker.rocketmq.protocol.service_pb2 import ReceiveMessageResponse, TelemetryCommand
from tests.broker.running import API_KEY

SERVICE = "apache.rocketmq.v2.MessagingService"
ENDPOINTS = Endpoints(scheme=AddressScheme.DOMAIN_NAME, addresses=[Address(host="broker.example", port=1234)])
_numbers = itertools.count()


def new_id() -> str:
    """A message id as clients make them."""
    return f"01{secrets.token_hex(16).upper()}"


def seconds(value: float) -> Duration:
    found = Duration()
    found.FromMicroseconds(round(value * 1e6))
    return found


def message(topic: str, body: bytes, kind: MessageType = MessageType.NORMAL, **system: Any) -> Message:
    """A message with a new id, and system properties by their names; `properties` are the producer's own."""
    own = system.pop("properties", {})
    fields: dict[str, Any] = {"message_id": new_id(), "message_type": kind, "body_encoding": Encoding.IDENTITY} | system
    return Message(
        topic=Resource(name=topic), body=body, user_properties=own, system_properties=SystemProperties(**fields)
    )


class Stream:
    """The telemetry of a client: what it writes, and what it is answered and asked."""

    def __init__(self, call: Any, commands: "SimpleQueue[TelemetryCommand | None]") -> None:
        self._call = call
        self._commands = commands

    def write(self, command: TelemetryCommand) -> None:
        self._commands.put(command)

    def read(self) -> TelemetryCommand:
        """The next command of the broker. Raises StopIteration at the stream's end."""
        found: TelemetryCommand = next(self._call)
        return found

    def is_told(self, settings: Settings) -> TelemetryCommand:
        """Sends settings; returns the answer."""
        self.write(TelemetryCommand(settings=settings))
        return self.read()


class Client:
    """Calls of one client id over one connection. The key signs; another `secret` makes the signature wrong."""

    def __init__(
        self, address: str, key: str = API_KEY, *, secret: str | None = None, roots: bytes | None = None
    ) -> None:
        self.client_id = f"client-{next(_numbers)}-{secrets.token_hex(4)}"
        self.key = key
        self.secret = key if secret is None else secret
        options = [("grpc.max_receive_message_length", -1)]
        if roots is None:
            self.channel = grpc.insecure_channel(address, options)
        else:
            self.channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(roots), options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The headers of a call, as the clients send them."""
        now = time.strftime("%Y%m%dT%H%M%SZ")
        signature = hmac.new(self.secret.encode(), now.encode(), hashlib.sha1).hexdigest().upper()
        signed = f"Credential={self.key}, SignedHeaders=x-mq-date-time, Signature={signature}"
        return (
            ("x-mq-client-id", self.client_id),
            ("x-mq-date-time", now),
            ("authorization", f"MQv2-HMAC-SHA1 {signed}"),
            ("x-mq-language", "PYTHON"),
            ("x-mq-protocol", "v2"),
        )

    def call(
        self, name: str, request: Any, *, metadata: tuple[tuple[str, str], ...] | None = None, timeout: float = 20
    ) -> Any:
        """The answer to a call."""
        made = self.channel.unary_unary(
            f"/{SERVICE}/{name}", type(request).SerializeToString, getattr(service_pb2, f"{name}Response").FromString
        )
        return made(request, timeout=timeout, metadata=self.metadata() if metadata is None else metadata)

    def send(self, *messages: Message) -> service_pb2.SendMessageResponse:
        found: service_pb2.SendMessageResponse = self.call(
            "SendMessage", service_pb2.SendMessageRequest(messages=messages)
        )
        return found

    def end(
        self,
        topic: str,
        transaction_id: str,
        resolution: TransactionResolution,
        source: TransactionSource = TransactionSource.SOURCE_CLIENT,
    ) -> int:
        """Ends a transaction; returns the code of the answer."""
        request = service_pb2.EndTransactionRequest(
            topic=Resource(name=topic), transaction_id=transaction_id, resolution=resolution, source=source
        )
        return int(self.call("EndTransaction", request).status.code)

    def receiving(self, group: str, topic: str, **given: Any) -> Any:
        """The call of a receive, which answers are read of; `wait`, `invisible` and `timeout` are in seconds."""
        kind, text = given.pop("filter_type", FilterType.TAG), given.pop("filter", "*")
        wait, timeout = given.pop("wait", 5.0), given.pop("timeout", 20.0)
        if (invisible := given.pop("invisible", None)) is not None:
            given["invisible_duration"] = seconds(invisible)
        request = service_pb2.ReceiveMessageRequest(
            group=Resource(name=group),
            message_queue=MessageQueue(topic=Resource(name=topic), id=-1),
            filter_expression=FilterExpression(type=kind, expression=text),
            long_polling_timeout=seconds(wait),
            **{"batch_size": 32, **given},
        )
        made = self.channel.unary_stream(
            f"/{SERVICE}/ReceiveMessage", type(request).SerializeToString, ReceiveMessageResponse.FromString
        )
        return made(request, timeout=timeout, metadata=self.metadata())

    def receive(self, group: str, topic: str, **given: Any) -> tuple[int, list[Message]]:
        """A receive: the code of its status, and its messages. A call without a message ends 0.3 s before `timeout`."""
        answers = list(self.receiving(group, topic, **given))
        [status] = [answer.status for answer in answers if answer.HasField("status")]
        assert answers[0].HasField("status")
        assert answers[-1].HasField("delivery_timestamp" if status.code in (20000, 40401) else "status")
        return int(status.code), [answer.message for answer in answers if answer.HasField("message")]

    def received(self, group: str, topic: str, **given: Any) -> list[Message]:
        """The messages of a receive; none where a busy machine could not answer before the deadline."""
        try:
            return self.receive(group, topic, **given)[1]
        except grpc.RpcError as problem:
            if problem.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
            return []

    def all(self, count: int, group: str, topic: str, **given: Any) -> list[Message]:
        """So many messages, by as many receives as they need; each is acked."""
        found: list[Message] = []
        while len(found) < count:
            page = self.received(group, topic, **given)
            assert page, f"{len(found)} of {count} messages have come"
            self.ack(group, *page)
            found += page
        return found

    def ack(self, group: str, *messages: Message) -> service_pb2.AckMessageResponse:
        entries = [
            service_pb2.AckMessageEntry(
                message_id=one.system_properties.message_id, receipt_handle=one.system_properties.receipt_handle
            )
            for one in messages
        ]
        request = service_pb2.AckMessageRequest(group=Resource(name=group), entries=entries)
        found: service_pb2.AckMessageResponse = self.call("AckMessage", request)
        return found

    def change(self, group: str, given: Message, invisible: float) -> int:
        """Changes the invisible time of a delivery; returns the code of the answer."""
        request = service_pb2.ChangeInvisibleDurationRequest(
            group=Resource(name=group),
            receipt_handle=given.system_properties.receipt_handle,
            invisible_duration=seconds(invisible),
        )
        return int(self.call("ChangeInvisibleDuration", request).status.code)

    @contextmanager
    def telemetry(self, *first: TelemetryCommand) -> Iterator[Stream]:
        """The client's stream, open within the block."""
        commands: SimpleQueue[TelemetryCommand | None] = SimpleQueue()
        for command in first:
            commands.put(command)
        made = self.channel.stream_stream(
            f"/{SERVICE}/Telemetry", TelemetryCommand.SerializeToString, TelemetryCommand.FromString
        )
        call = made(iter(commands.get, None), timeout=60, metadata=self.metadata())
        try:
            yield Stream(call, commands)
        finally:
            commands.put(None)
            call.cancel()


def of_producer(*topics: str) -> Settings:
    """The settings of a producer of some topics."""
    publishing = Publishing(topics=[Resource(name=topic) for topic in topics])
    return Settings(client_type=ClientType.PRODUCER, publishing=publishing)


def of_consumer(group: str, kind: ClientType = ClientType.PUSH_CONSUMER) -> Settings:
    """The settings of a consumer of a group."""
    return Settings(client_type=kind, subscription=Subscription(group=Resource(name=group)))
