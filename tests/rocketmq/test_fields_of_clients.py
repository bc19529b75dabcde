"""Every field of every request: a value that no client sends is refused by a code, or taken; none is a failure."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message as Request

from mqbroker.errors import STATUS_OF_CODE
from mqbroker.rocketmq.protocol import service_pb2
from mqbroker.rocketmq.protocol.definition_pb2 import MessageQueue, MessageType, Resource, TransactionResolution
from mqbroker.rocketmq.protocol.service_pb2 import (
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    EndTransactionRequest,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    QueryAssignmentRequest,
    QueryRouteRequest,
    RecallMessageRequest,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    SendMessageRequest,
    TelemetryCommand,
)
from mqbroker.rocketmq.statuses import CODE_OF
from tests.broker.characters import name
from tests.broker.running import RunningBroker
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.hostile import variants
from tests.rocketmq.stub import ENDPOINTS, SERVICE, Client, message, new_id, of_consumer, of_producer, seconds

FAILED = 50001
# A value of no enumeration.
NONE: Any = 99
OK, BAD_REQUEST, ILLEGAL_INVISIBLE_TIME, ILLEGAL_DELIVERY_TIME = 20000, 40000, 40011, 40012


def sending(topic: str, kind: MessageType = MessageType.NORMAL, **system: Any) -> SendMessageRequest:
    return SendMessageRequest(messages=[message(topic, b"tea", kind, **system)])


def receiving(topic: str) -> ReceiveMessageRequest:
    return ReceiveMessageRequest(
        group=Resource(name=topic), message_queue=MessageQueue(topic=Resource(name=topic), id=-1), batch_size=1
    )


@pytest.fixture(autouse=True)
def nothing_failed(gateway: Gateway) -> Iterator[None]:
    """The process logs no failure during the test."""
    before = len(gateway.log.read_text())
    yield
    said = gateway.log.read_text()[before:]
    assert "Traceback" not in said, said[-3000:]


# A request of each call, for a topic that exists and a group of its name.
UNARY: dict[str, tuple[str, Callable[[Resource], Request]]] = {
    "a send": ("SendMessage", lambda topic: sending(topic.name)),
    "a batch": ("SendMessage", lambda topic: SendMessageRequest(messages=[message(topic.name, b"tea") for _ in "ab"])),
    "a half message": ("SendMessage", lambda topic: sending(topic.name, MessageType.TRANSACTION)),
    "an end": (
        "EndTransaction",
        lambda topic: EndTransactionRequest(
            topic=topic,
            transaction_id="0190b6b4-0000-7000-8000-000000000000",
            resolution=TransactionResolution.COMMIT,
        ),
    ),
    "a route": ("QueryRoute", lambda topic: QueryRouteRequest(topic=topic, endpoints=ENDPOINTS)),
    "an assignment": (
        "QueryAssignment",
        lambda topic: QueryAssignmentRequest(topic=topic, group=topic, endpoints=ENDPOINTS),
    ),
    "a heartbeat": ("Heartbeat", lambda topic: HeartbeatRequest(group=topic)),
    "an ack": (
        "AckMessage",
        lambda topic: AckMessageRequest(group=topic, topic=topic, entries=[AckMessageEntry(receipt_handle="7")]),
    ),
    "a change": (
        "ChangeInvisibleDuration",
        lambda topic: ChangeInvisibleDurationRequest(group=topic, receipt_handle="7", invisible_duration=seconds(10)),
    ),
    "a dead letter": (
        "ForwardMessageToDeadLetterQueue",
        lambda topic: ForwardMessageToDeadLetterQueueRequest(group=topic, receipt_handle="7"),
    ),
    "the end of a client": ("NotifyClientTermination", lambda topic: NotifyClientTerminationRequest(group=topic)),
    "a recall": ("RecallMessage", lambda topic: RecallMessageRequest(topic=topic, recall_handle="7")),
}


def failures(call: Callable[[Request], int], base: Request) -> list[str]:
    """The variants of a request at which the broker failed."""

    def outcome(variant: tuple[str, Request]) -> str | None:
        what, request = variant
        try:
            return what if call(request) == FAILED else None
        except grpc.RpcError as problem:
            # Of a long poll that had nothing to be answered.
            return None if problem.code() == grpc.StatusCode.DEADLINE_EXCEEDED else f"{what}: {problem.details()}"

    with ThreadPoolExecutor(8) as pool:
        return [found for found in pool.map(outcome, map(with_own_ids, variants(base))) if found is not None]


def with_own_ids(variant: tuple[str, Request]) -> tuple[str, Request]:
    """A request whose messages have ids that no other one has: else it would be a repeat, and nothing stored."""
    what, request = variant
    if isinstance(request, SendMessageRequest) and not what.startswith("messages.system_properties.message_id="):
        for one in request.messages:
            one.system_properties.message_id = new_id()
    return variant


@pytest.mark.parametrize("case", UNARY)
def test_no_field_of_a_request_fails_the_broker(case: str, client: Client, orders: str) -> None:
    call, request = UNARY[case]
    client.send(message(orders, b"first"))
    client.received(orders, orders)

    found = failures(lambda given: client.call(call, given).status.code, request(Resource(name=orders)))

    assert found == []


def test_no_field_of_a_receive_fails_the_broker(client: Client, orders: str) -> None:
    receive = client.channel.unary_stream(
        f"/{SERVICE}/ReceiveMessage", ReceiveMessageRequest.SerializeToString, ReceiveMessageResponse.FromString
    )

    def code_of(request: Request) -> int:
        answers = list(receive(request, timeout=0.6, metadata=client.metadata()))
        return int(next(one.status.code for one in answers if one.HasField("status")))

    client.send(*[message(orders, b"tea") for _ in range(400)])

    assert failures(code_of, receiving(orders)) == []


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_no_field_of_a_command_fails_the_broker(kind: str, client: Client, orders: str) -> None:
    settings = of_producer(orders) if kind == "producer" else of_consumer(orders)
    open_stream = client.channel.stream_stream(
        f"/{SERVICE}/Telemetry", TelemetryCommand.SerializeToString, TelemetryCommand.FromString
    )

    def answer_to(request: Request) -> int:
        answers = open_stream(iter([request]), timeout=20, metadata=client.metadata())
        return next((int(answer.status.code) for answer in answers), OK)

    assert failures(answer_to, TelemetryCommand(settings=settings)) == []


def test_all_that_was_taken_is_read_again_over_both_protocols(
    client: Client, broker: RunningBroker, orders: str
) -> None:
    sent, request = 0, sending(orders)
    for _, variant in map(with_own_ids, variants(sending(orders))):
        request.ParseFromString(variant.SerializeToString())
        sent += client.call("SendMessage", request).status.code == OK and request.messages[0].topic.name == orders
    received = client.all(sent, "coupons", orders)

    read = broker.wire()
    group = name("group")
    left = sent
    while left:
        answer = read.post(f"/v1/consumer-groups/{group}/receive", {"topic": orders, "wait_seconds": 5})
        assert answer.status == 200
        left -= len(answer.document["messages"])
    assert len(received) == sent


def test_every_refusal_of_the_broker_has_a_code_of_the_protocol() -> None:
    assert STATUS_OF_CODE.keys() - CODE_OF.keys() == set()


# What a refusal is called: the code that says which field it is, or 40000.
CODES: dict[str, tuple[str, Callable[[Resource], Request], int]] = {
    "a trace context with a character that no text may have": (
        "SendMessage",
        lambda topic: sending(topic.name, trace_context="00-\0"),
        BAD_REQUEST,
    ),
    "a check after more than 10,000 years": (
        "SendMessage",
        lambda topic: sending(
            topic.name, MessageType.TRANSACTION, orphaned_transaction_recovery_duration={"seconds": 2**62}
        ),
        BAD_REQUEST,
    ),
    "a check at a negative time": (
        "SendMessage",
        lambda topic: sending(
            topic.name, MessageType.TRANSACTION, orphaned_transaction_recovery_duration={"seconds": -5}
        ),
        BAD_REQUEST,
    ),
    "an invisible time of more than 10,000 years": (
        "ChangeInvisibleDuration",
        lambda topic: ChangeInvisibleDurationRequest(
            group=topic, receipt_handle="7", invisible_duration={"seconds": 2**62}
        ),
        ILLEGAL_INVISIBLE_TIME,
    ),
    "a delivery in the year 10000": (
        "SendMessage",
        lambda topic: sending(topic.name, MessageType.DELAY, delivery_timestamp={"seconds": 253_402_300_800}),
        ILLEGAL_DELIVERY_TIME,
    ),
    "a message that was made before the year 1": (
        "SendMessage",
        lambda topic: sending(topic.name, born_timestamp={"seconds": -62_135_596_801}),
        BAD_REQUEST,
    ),
    "an encoding that no client has": (
        "SendMessage",
        lambda topic: sending(topic.name, body_encoding=NONE),
        BAD_REQUEST,
    ),
    "a kind of message that there is not": ("SendMessage", lambda topic: sending(topic.name, NONE), BAD_REQUEST),
    "an end that is none": (
        "EndTransaction",
        lambda topic: EndTransactionRequest(
            topic=topic, transaction_id="0190b6b4-0000-7000-8000-000000000000", resolution=NONE
        ),
        BAD_REQUEST,
    ),
    "an address that is too long": (
        "QueryRoute",
        lambda topic: QueryRouteRequest(
            topic=topic, endpoints={"scheme": 3, "addresses": [{"host": "x" * 10_000, "port": 1}]}
        ),
        40001,
    ),
}


@pytest.mark.parametrize("case", CODES)
def test_a_value_that_cannot_be_is_refused_by_its_code(case: str, client: Client, orders: str) -> None:
    call, request, code = CODES[case]
    client.send(message(orders, b"first"))
    client.received(orders, orders)

    status = client.call(call, request(Resource(name=orders))).status

    assert (status.code, bool(status.message)) == (code, True)


@pytest.mark.parametrize(
    ("call", "repeated"),
    [("SendMessage", b"\x0a\x00"), ("SendMessage", b"\x0a\x04\x12\x00\x12\x00"), ("AckMessage", b"\x1a\x00")],
    ids=["messages", "properties", "entries"],
)
def test_a_request_of_very_many_fields_is_refused_before_it_is_parsed(
    call: str, repeated: bytes, client: Client
) -> None:
    """Parsed, 4 MiB of them would take 150 MB, and hold up every other caller for a quarter of a second."""
    made = client.channel.unary_unary(f"/{SERVICE}/{call}", bytes, getattr(service_pb2, f"{call}Response").FromString)

    status = made(repeated * (2**22 // len(repeated)), metadata=client.metadata(), timeout=20).status

    assert (status.code, "more than 20000 fields" in status.message) == (BAD_REQUEST, True)
