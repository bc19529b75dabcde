"""What a client says over its stream: its settings replace each other, and its checks go to the key that began them."""

from collections.abc import Iterator

import pytest

from mqbroker.rocketmq.protocol.definition_pb2 import (
    UA,
    Publishing,
    Resource,
    Settings,
    TransactionResolution,
)
from mqbroker.rocketmq.protocol.service_pb2 import TelemetryCommand
from tests.broker.running import RunningBroker
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import SERVICE, Client, of_producer
from tests.rocketmq.test_access_of_clients import made_key
from tests.rocketmq.test_transactions_of_clients import begin, question

OK, BAD_REQUEST = 20000, 40000
ROLLBACK = TransactionResolution.ROLLBACK


@pytest.fixture
def owner(broker: RunningBroker, plain: Gateway) -> Iterator[Client]:
    """A client with a key of its own."""
    with Client(plain.address, made_key(broker, ["produce:*"])["key"]) as client:
        yield client


@pytest.fixture
def stranger(broker: RunningBroker, plain: Gateway) -> Iterator[Client]:
    """A client with another key, which may produce to the same topics."""
    with Client(plain.address, made_key(broker, ["produce:*"])["key"]) as client:
        yield client


def checks_of(broker: RunningBroker, transaction_id: str) -> int:
    found: int = broker.wire().get(f"/v1/transactions/{transaction_id}").document["check_times"]
    return found


def test_the_last_settings_say_which_topics_a_client_is_asked_about(
    owner: Client, stranger: Client, broker: RunningBroker, orders: str, coupons: str
) -> None:
    with owner.telemetry() as stream:
        stream.is_told(of_producer(orders))
        stream.is_told(of_producer(coupons))
        of_orders, of_coupons = begin(stranger, orders), begin(stranger, coupons)

        assert question(stream).transaction_id == of_coupons
        assert checks_of(broker, of_orders) == 0

    for topic, transaction in ((orders, of_orders), (coupons, of_coupons)):
        stranger.end(topic, transaction, ROLLBACK)


def test_a_half_message_is_asked_about_over_the_streams_of_the_key_that_began_it(
    owner: Client, stranger: Client, orders: str
) -> None:
    with owner.telemetry() as of_owner, stranger.telemetry() as of_stranger:
        of_owner.is_told(of_producer(orders))
        of_stranger.is_told(of_producer(orders))
        # By turns, so that each look finds some of both.
        begun = [(begin(owner, orders), begin(stranger, orders)) for _ in range(8)]

        asked = [(question(of_owner).transaction_id, question(of_stranger).transaction_id) for _ in begun]

        for number, key in enumerate((owner, stranger)):
            assert {one[number] for one in asked} == {one[number] for one in begun}
            for one in begun:
                key.end(orders, one[number], ROLLBACK)


def test_another_key_is_asked_once_no_stream_of_the_key_that_began_a_half_message_is_open(
    owner: Client, stranger: Client, orders: str
) -> None:
    with stranger.telemetry() as of_stranger:
        of_stranger.is_told(of_producer(orders))
        with owner.telemetry() as of_owner:
            of_owner.is_told(of_producer(orders))
            begun = begin(owner, orders)
            assert question(of_owner).transaction_id == begun

        assert question(of_stranger).transaction_id == begun
        stranger.end(orders, begun, ROLLBACK)


def test_another_key_is_asked_where_the_key_that_began_a_half_message_is_revoked(
    broker: RunningBroker, plain: Gateway, stranger: Client, orders: str
) -> None:
    made = made_key(broker, ["produce:*"])
    with Client(plain.address, made["key"]) as revoked, revoked.telemetry() as stream:
        stream.is_told(of_producer(orders))
        begun = begin(revoked, orders)
        broker.wire().call("DELETE", f"/v1/api-keys/{made['name']}")
        with stranger.telemetry() as of_stranger:
            of_stranger.is_told(of_producer(orders))

            assert question(of_stranger).transaction_id == begun

    stranger.end(orders, begun, ROLLBACK)


@pytest.mark.parametrize(
    "given",
    [
        b"\xff\xff\xff",
        b"\x0a\xff\xff\xff\xff\x0f",
        TelemetryCommand(
            settings=Settings(user_agent=UA(hostname="x" * 200_000), publishing=Publishing())
        ).SerializeToString(),
        TelemetryCommand(
            settings=Settings(publishing=Publishing(topics=[Resource(name="x" * 1000)] * 1000))
        ).SerializeToString(),
    ],
    ids=["no message", "cut short", "a long text", "many topics"],
)
def test_a_command_that_cannot_be_read_is_refused_and_the_stream_goes_on(
    gateway: Gateway, client: Client, orders: str, given: bytes
) -> None:
    waiting = iter([given, TelemetryCommand(settings=of_producer(orders)).SerializeToString()])
    made = client.channel.stream_stream(f"/{SERVICE}/Telemetry", bytes, TelemetryCommand.FromString)

    answers = made(waiting, timeout=20, metadata=client.metadata())

    assert [next(answers).status.code, next(answers).status.code] == [BAD_REQUEST, OK]
    answers.cancel()
