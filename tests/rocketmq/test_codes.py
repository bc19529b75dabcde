"""What the protocol refuses, call by call: the codes that clients know."""

import gzip
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message as Request

from mqbroker.rocketmq.protocol.definition_pb2 import (
    Encoding,
    FilterType,
    MessageQueue,
    MessageType,
    Resource,
    TransactionResolution,
)
from mqbroker.rocketmq.protocol.service_pb2 import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    ChangeInvisibleDurationRequest,
    EndTransactionRequest,
    ForwardMessageToDeadLetterQueueRequest,
    HeartbeatRequest,
    NotifyClientTerminationRequest,
    PullMessageRequest,
    PullMessageResponse,
    QueryAssignmentRequest,
    QueryOffsetRequest,
    QueryOffsetResponse,
    QueryRouteRequest,
    RecallMessageRequest,
    SendMessageRequest,
    SendMessageResponse,
    SyncLiteSubscriptionRequest,
    SyncLiteSubscriptionResponse,
)
from tests.broker.characters import name
from tests.rocketmq.stub import ENDPOINTS, SERVICE, Client, message, new_id, seconds

OK = 20000
COMMIT = TransactionResolution.COMMIT
LATE = 10**10  # s since 1970
MIB = gzip.compress(bytes(2**20))


def sends(*given: Any) -> SendMessageRequest:
    return SendMessageRequest(messages=given)


def of_topic(text: str) -> Resource:
    return Resource(name=text)


# A request of each call that is refused, by its code; `topic` is one that exists, and so does its group.
REFUSED: dict[str, tuple[str, Callable[[str], Request], int]] = {
    "a send of nothing": ("SendMessage", lambda topic: sends(), 40016),
    "a send to two topics": ("SendMessage", lambda topic: sends(message(topic, b"x"), message("b", b"x")), 40016),
    "a topic that none may have": ("SendMessage", lambda topic: sends(message("a b", b"x")), 40002),
    "a topic of the broker's own": ("SendMessage", lambda topic: sends(message("%DLQ%a", b"x")), 40300),
    "an empty body": ("SendMessage", lambda topic: sends(message(topic, b"")), 41302),
    "a body that is too large": ("SendMessage", lambda topic: sends(message(topic, b"x" * (4 * 2**20 + 1))), 41301),
    "an id of another form": ("SendMessage", lambda topic: sends(message(topic, b"x", message_id="7")), 40009),
    "an id that is no number": (
        "SendMessage",
        lambda topic: sends(message(topic, b"x", message_id="01" + "g" * 32)),
        40009,
    ),
    "large properties": (
        "SendMessage",
        lambda topic: sends(message(topic, b"x", properties={"a": "x" * 20_000})),
        43101,
    ),
    "a property of RocketMQ's own": (
        "SendMessage",
        lambda topic: sends(message(topic, b"x", properties={"KEYS": "x"})),
        40000,
    ),
    "a tag that separates": ("SendMessage", lambda topic: sends(message(topic, b"x", tag="a|b")), 40000),
    "a delay of years": (
        "SendMessage",
        lambda topic: sends(message(topic, b"x", MessageType.DELAY, delivery_timestamp={"seconds": LATE})),
        40012,
    ),
    "a lite topic": ("SendMessage", lambda topic: sends(message(topic, b"x", MessageType.LITE)), 40020),
    "a lite topic of a message": ("SendMessage", lambda topic: sends(message(topic, b"x", lite_topic="a")), 40020),
    "a priority": ("SendMessage", lambda topic: sends(message(topic, b"x", priority=1)), 50500),
    "a body that is no gzip": (
        "SendMessage",
        lambda topic: sends(message(topic, b"x" * 99, body_encoding=Encoding.GZIP)),
        40016,
    ),
    "a body that gzip cut short": (
        "SendMessage",
        lambda topic: sends(message(topic, gzip.compress(b"x" * 999)[:-9], body_encoding=Encoding.GZIP)),
        40016,
    ),
    "a body that unpacks to too much": (
        "SendMessage",
        lambda topic: sends(message(topic, gzip.compress(bytes(100 * 2**20)), body_encoding=Encoding.GZIP)),
        41301,
    ),
    "a batch that unpacks to too much": (
        "SendMessage",
        lambda topic: sends(*[message(topic, MIB, body_encoding=Encoding.GZIP) for _ in range(900)]),
        41301,
    ),
    "delays in a batch": (
        "SendMessage",
        lambda topic: sends(*[message(topic, b"x", delivery_timestamp={"seconds": LATE}) for _ in range(2)]),
        40016,
    ),
    "half messages in a batch": (
        "SendMessage",
        lambda topic: sends(*[message(topic, b"x", MessageType.TRANSACTION) for _ in range(2)]),
        40016,
    ),
    "an end of what was not begun": (
        "EndTransaction",
        lambda topic: EndTransactionRequest(
            topic=of_topic(topic),
            transaction_id="0190b6b4-0000-7000-8000-000000000000",
            resolution=COMMIT,
        ),
        40008,
    ),
    "an end of no transaction": (
        "EndTransaction",
        lambda topic: EndTransactionRequest(topic=of_topic(topic), transaction_id="7", resolution=COMMIT),
        40008,
    ),
    "a route without endpoints": ("QueryRoute", lambda topic: QueryRouteRequest(topic=of_topic(topic)), 40001),
    "a route of no topic": (
        "QueryRoute",
        lambda topic: QueryRouteRequest(topic=of_topic("%DLQ%no-group"), endpoints=ENDPOINTS),
        40402,
    ),
    "an assignment without endpoints": (
        "QueryAssignment",
        lambda topic: QueryAssignmentRequest(topic=of_topic(topic), group=of_topic(topic)),
        40001,
    ),
    "a handle of nothing that is recalled": (
        "RecallMessage",
        lambda topic: RecallMessageRequest(topic=of_topic(topic), recall_handle="7"),
        40000,
    ),
    "an ack of nothing": ("AckMessage", lambda topic: AckMessageRequest(group=of_topic(topic)), 40000),
    "an ack of what was never handed out": (
        "AckMessage",
        lambda topic: AckMessageRequest(group=of_topic(topic), entries=[AckMessageEntry(receipt_handle="7")]),
        40013,
    ),
    "an ack in no group": (
        "AckMessage",
        lambda topic: AckMessageRequest(group=of_topic("no-group"), entries=[AckMessageEntry(receipt_handle="7")]),
        40403,
    ),
    "a change of what was never handed out": (
        "ChangeInvisibleDuration",
        lambda topic: ChangeInvisibleDurationRequest(
            group=of_topic(topic), receipt_handle="7", invisible_duration=seconds(10)
        ),
        40013,
    ),
    "a change to an endless time": (
        "ChangeInvisibleDuration",
        lambda topic: ChangeInvisibleDurationRequest(
            group=of_topic(topic), receipt_handle="7", invisible_duration=seconds(10**6)
        ),
        40011,
    ),
    "a change that is not to count": (
        "ChangeInvisibleDuration",
        lambda topic: ChangeInvisibleDurationRequest(group=of_topic(topic), receipt_handle="7", suspend=True),
        50500,
    ),
    "a dead letter of what was never handed out": (
        "ForwardMessageToDeadLetterQueue",
        lambda topic: ForwardMessageToDeadLetterQueueRequest(group=of_topic(topic), receipt_handle="7"),
        40013,
    ),
    "the end of a client of no group": (
        "NotifyClientTermination",
        lambda topic: NotifyClientTerminationRequest(group=of_topic("no-group")),
        OK,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_call_is_refused_by_the_code_that_clients_know(case: str, client: Client, orders: str) -> None:
    call, request, code = REFUSED[case]
    client.send(message(orders, b"first"))
    client.received(orders, orders)

    status = client.call(call, request(orders)).status

    assert (status.code, bool(status.message)) == (code, True)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"filter": "A ||"}, 40010),
        ({"filter": "price >", "filter_type": FilterType.SQL}, 40010),
        ({"invisible": 0.001}, 40011),
        ({"invisible": 10.0**6}, 40011),
    ],
)
def test_a_receive_is_refused_by_its_only_status(given: dict[str, Any], code: int, client: Client, orders: str) -> None:
    assert client.receive(name("group"), orders, **given) == (code, [])


def test_a_receive_of_a_topic_of_delays_is_forbidden(client: Client) -> None:
    assert client.receive(name("group"), "SCHEDULE_TOPIC_XXXX")[0] == 40300


@pytest.mark.parametrize(
    ("call", "request_", "answer"),
    [
        ("PullMessage", PullMessageRequest(message_queue=MessageQueue(id=0)), PullMessageResponse),
        ("QueryOffset", QueryOffsetRequest(), QueryOffsetResponse),
        ("SyncLiteSubscription", SyncLiteSubscriptionRequest(), SyncLiteSubscriptionResponse),
    ],
)
def test_what_rocketmq_leaves_unimplemented_is_that_here(call: str, request_: Any, answer: Any, client: Client) -> None:
    made = client.channel.unary_unary(f"/{SERVICE}/{call}", type(request_).SerializeToString, answer.FromString)

    with pytest.raises(grpc.RpcError) as refused:
        made(request_, timeout=10, metadata=client.metadata())

    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_heartbeat_is_answered_without_a_key(client: Client) -> None:
    assert client.call("Heartbeat", HeartbeatRequest(), metadata=()).status.code == OK


def test_an_ack_of_which_a_part_is_expired_says_so_by_entry(client: Client, orders: str) -> None:
    client.send(message(orders, b"x"))
    [received] = client.received("coupons", orders)

    both: AckMessageResponse = client.call(
        "AckMessage",
        AckMessageRequest(
            group=of_topic("coupons"),
            entries=[
                AckMessageEntry(message_id=new_id(), receipt_handle="7"),
                AckMessageEntry(
                    message_id=received.system_properties.message_id,
                    receipt_handle=received.system_properties.receipt_handle,
                ),
            ],
        ),
    )

    assert both.status.code == 30000
    assert [entry.status.code for entry in both.entries] == [40013, OK]
    assert both.entries[1].message_id == received.system_properties.message_id


def test_what_is_no_request_is_refused(client: Client) -> None:
    call = client.channel.unary_unary(f"/{SERVICE}/SendMessage", bytes, SendMessageResponse.FromString)

    status = call(b"\xff\xff\xff", metadata=client.metadata(), timeout=20).status

    assert (status.code, status.message) == (40000, "The request is no SendMessageRequest.")
