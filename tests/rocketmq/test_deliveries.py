"""Deliveries over the protocol: hidden for their time, extended, given up, repeated, and offered again."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from mqbroker_client import Admin

from mqbroker.rocketmq.protocol.definition_pb2 import ClientType, Language, Message, MessageType, Resource
from mqbroker.rocketmq.protocol.service_pb2 import (
    ForwardMessageToDeadLetterQueueRequest,
    NotifyClientTerminationRequest,
)
from tests.broker.characters import name
from tests.broker.polling import at_this_load
from tests.broker.running import RunningBroker
from tests.rocketmq.conftest import Gateway
from tests.rocketmq.stub import Client, message, of_consumer

PATIENT = {"kind": "table", "delay_seconds": [300]}


@pytest.fixture
def coupons(broker: RunningBroker) -> str:
    """A consumer group whose retries wait for minutes, by its policy."""
    group = name("coupons")
    Admin(broker.client()).create_consumer_group(group, retry_policy=PATIENT)
    return group


def handle(given: Message) -> str:
    return given.system_properties.receipt_handle


def attempt(given: Message) -> int:
    return given.system_properties.delivery_attempt


def test_a_message_that_is_not_settled_in_time_comes_again_without_the_delay_of_a_retry(
    client: Client, coupons: str, orders: str
) -> None:
    client.send(message(orders, b"tea"))
    [first] = client.received(coupons, orders, invisible=1.0)

    [second] = client.received(coupons, orders, wait=15.0)

    assert (attempt(first), attempt(second), second.body) == (1, 2, b"tea")
    assert client.ack(coupons, first).status.code == 40013
    assert client.ack(coupons, second).status.code == 20000


def test_over_http_the_same_delivery_waits_for_its_retry(broker: RunningBroker, client: Client, orders: str) -> None:
    group = name("coupons")
    Admin(broker.client()).create_consumer_group(group, retry_policy=PATIENT)
    client.send(message(orders, b"tea"))
    asked = {"topic": orders, "wait_seconds": 5, "invisible_seconds": 1}
    assert broker.wire().post(f"/v1/consumer-groups/{group}/receive", asked).document["messages"]

    assert client.received(group, orders, timeout=6) == []


def test_a_delivery_is_extended_and_may_be_ended_at_once(client: Client, coupons: str, orders: str) -> None:
    client.send(message(orders, b"tea"))
    [first] = client.received(coupons, orders, invisible=1.0)

    assert client.change(coupons, first, 60) == 20000
    assert client.received(coupons, orders, timeout=4) == []
    assert client.change(coupons, first, 0) == 20000

    [second] = client.received(coupons, orders, wait=15.0)
    assert attempt(second) == 2


def test_a_failed_delivery_of_a_push_consumer_waits_for_the_delay_of_its_group(
    client: Client, broker: RunningBroker, orders: str
) -> None:
    group = name("coupons")
    Admin(broker.client()).create_consumer_group(group, retry_policy={"kind": "table", "delay_seconds": [2]})
    client.send(message(orders, b"tea"))
    with client.telemetry() as stream:
        stream.is_told(of_consumer(group))
        [first] = client.received(group, orders)
        failed_at = time.monotonic()

        assert client.change(group, first, 3600) == 20000

        [second] = client.received(group, orders, wait=15.0)
    assert attempt(second) == 2
    assert 1.9 < time.monotonic() - failed_at < at_this_load(12)


def test_what_a_client_gives_up_is_a_dead_letter_that_others_read(client: Client, coupons: str, orders: str) -> None:
    client.send(message(orders, b"tea", tag="a", properties={"price": "3"}))
    [given] = client.received(coupons, orders)

    answer = client.call(
        "ForwardMessageToDeadLetterQueue",
        ForwardMessageToDeadLetterQueueRequest(group=Resource(name=coupons), receipt_handle=handle(given)),
    )

    assert answer.status.code == 20000
    [dead] = client.received(name("readers"), f"%DLQ%{coupons}")
    system = dead.system_properties
    assert (dead.body, system.tag, dict(dead.user_properties)) == (b"tea", "a", {"price": "3"})
    assert system.dead_letter_queue.topic == orders
    assert system.dead_letter_queue.message_id == given.system_properties.message_id
    assert client.ack(coupons, given).status.code == 40013


def test_a_group_in_order_goes_on_once_its_failed_message_is_given_up(
    client: Client, broker: RunningBroker, orders: str
) -> None:
    group = name("coupons")
    Admin(broker.client()).create_consumer_group(group, ordered=True, retry_policy=PATIENT)
    for number in range(3):
        client.send(message(orders, bytes([number + 48]), MessageType.FIFO, message_group="customer"))

    seen = []
    for number in range(3):
        [given] = client.received(group, orders, batch_size=1, wait=15.0)
        seen.append(given.body)
        if number == 1:
            client.call(
                "ForwardMessageToDeadLetterQueue",
                ForwardMessageToDeadLetterQueueRequest(group=Resource(name=group), receipt_handle=handle(given)),
            )
        else:
            client.ack(group, given)

    assert seen == [b"0", b"1", b"2"]
    assert [one.body for one in client.received(name("readers"), f"%DLQ%{group}")] == [b"1"]


@pytest.mark.parametrize("ordered", [False, True])
def test_a_receive_that_is_repeated_under_its_attempt_is_handed_the_same(
    ordered: bool, client: Client, broker: RunningBroker, orders: str
) -> None:
    group = name("coupons")
    Admin(broker.client()).create_consumer_group(group, ordered=ordered)
    client.send(*[message(orders, bytes([number + 48])) for number in range(4)])
    first = client.received(group, orders, attempt_id="attempt-1")

    again = client.received(group, orders, attempt_id="attempt-1")
    client.ack(group, again[0])
    rest = client.received(group, orders, attempt_id="attempt-1")

    assert len(first) == 4
    assert [handle(one) for one in first] == [handle(one) for one in again]
    assert [one.body for one in rest] == [one.body for one in first[1:]]
    assert [attempt(one) for one in rest] == [1, 1, 1]
    client.ack(group, *rest)
    assert client.received(group, orders, attempt_id="attempt-1", timeout=1) == []


def test_an_attempt_whose_id_is_too_long_is_as_none(client: Client, orders: str) -> None:
    client.send(message(orders, b"tea"))
    client.received("coupons", orders, attempt_id="a" * 129)

    assert client.received("coupons", orders, attempt_id="a" * 129, timeout=1) == []


def test_another_attempt_is_not_handed_what_is_hidden(client: Client, orders: str) -> None:
    client.send(message(orders, b"tea"))
    client.received("coupons", orders, attempt_id="attempt-1")

    assert client.received("coupons", orders, attempt_id="attempt-2", timeout=1) == []


def test_a_receive_that_is_cancelled_takes_nothing(client: Client, other: Client, orders: str) -> None:
    for number in range(10):
        call = other.receiving("coupons", orders, wait=10.0)
        time.sleep(0.05)
        call.cancel()
        time.sleep(0.05)
        client.send(message(orders, b"%d" % number))
        [received] = client.received("coupons", orders, wait=10.0)
        assert (received.body, attempt(received)) == (b"%d" % number, 1)
        client.ack("coupons", received)


def test_a_receive_that_is_cancelled_as_a_message_comes_loses_none(client: Client, other: Client, orders: str) -> None:
    """What has left for the client when it cancels is hidden for its invisible time; all else is given back."""
    first_attempts = 0
    for number in range(10):
        call = other.receiving("coupons", orders, wait=10.0, invisible=1.0)
        time.sleep(0.02)
        with ThreadPoolExecutor() as pool:
            sending = pool.submit(client.send, message(orders, b"%d" % number))
            time.sleep(0.0015 * (number % 10))
            call.cancel()
            sending.result()
        [received] = client.received("coupons", orders, wait=15.0)
        assert received.body == b"%d" % number
        first_attempts += attempt(received) == 1
        client.ack("coupons", received)
    assert first_attempts > 2


def test_a_receive_ends_before_the_deadline_of_its_call(client: Client, orders: str) -> None:
    codes = []
    for _ in range(5):
        # A machine that stands still for 0.3 s answers too late.
        with suppress(grpc.RpcError):
            codes.append(client.receive("coupons", orders, wait=20.0, timeout=2.0)[0])
        if codes:
            break

    assert codes == [40401]


def test_a_slow_listener_is_not_given_its_message_twice_while_its_stream_is_open(
    quick: Gateway, coupons: str, orders: str
) -> None:
    with Client(quick.address) as slow, Client(quick.address) as second:
        slow.send(message(orders, b"tea"))
        with slow.telemetry() as stream:
            stream.is_told(of_consumer(coupons))
            [held] = slow.received(coupons, orders, auto_renew=True)

            assert second.received(coupons, orders, timeout=8) == []

        [again] = second.received(coupons, orders, wait=20.0)
        assert (again.body, attempt(again), handle(again) == handle(held)) == (b"tea", 2, False)


def test_what_a_client_holds_is_offered_at_once_when_it_ends(quick: Gateway, coupons: str, orders: str) -> None:
    with Client(quick.address) as leaving, Client(quick.address) as second:
        leaving.send(message(orders, b"tea"))
        with leaving.telemetry() as stream:
            stream.is_told(of_consumer(coupons))
            leaving.received(coupons, orders, auto_renew=True)
            ended = NotifyClientTerminationRequest(group=Resource(name=coupons))

            assert leaving.call("NotifyClientTermination", ended).status.code == 20000
            [again] = second.received(coupons, orders, timeout=3)

        # It was never seen by a listener: no retry is counted.
        assert (again.body, attempt(again)) == (b"tea", 1)


def test_settings_say_how_a_group_is_consumed(client: Client, broker: RunningBroker) -> None:
    group = name("coupons")
    retry_policy = {"kind": "table", "delay_seconds": [1, 2.5, 60]}
    Admin(broker.client()).create_consumer_group(group, ordered=True, max_reconsume_times=4, retry_policy=retry_policy)
    given = of_consumer(group)

    with client.telemetry() as stream:
        answer = stream.is_told(given)
        given.user_agent.language = Language.NODE_JS
        of_node = stream.is_told(given)

    assert answer.status.code == 20000
    found = answer.settings
    assert (found.metric.on, found.subscription.fifo, found.subscription.receive_batch_size) == (False, True, 32)
    assert (found.subscription.long_polling_timeout.seconds, found.subscription.group.name) == (20, group)
    waits = [one.ToMicroseconds() / 1e6 for one in found.backoff_policy.customized_backoff.next]
    assert (found.backoff_policy.max_attempts, waits) == (5, [1, 2.5, 60, 60])
    exponential = of_node.settings.backoff_policy.exponential_backoff
    assert (exponential.initial.seconds, exponential.max.seconds) == (1, 60)
    assert of_node.settings.client_type == ClientType.PUSH_CONSUMER


def test_a_group_without_retries_has_a_strategy_all_the_same(client: Client, broker: RunningBroker) -> None:
    group = name("coupons")
    Admin(broker.client()).create_consumer_group(group, retry_policy={"kind": "none"})

    with client.telemetry() as stream:
        policy = stream.is_told(of_consumer(group)).settings.backoff_policy

    assert (policy.max_attempts, len(policy.customized_backoff.next)) == (1, 1)


def test_a_port_that_is_taken_is_said(broker: RunningBroker, plain: Gateway, tmp_path: Path) -> None:
    second = Gateway(broker, tmp_path)
    second.child = type(second.child)(
        "second", [*plain.child.command], broker.environment, tmp_path / "second.log", broker.checkout
    )
    second.child.start()
    while second.child.is_running():
        time.sleep(0.05)

    assert f"127.0.0.1:{plain.port} cannot be listened on" in (tmp_path / "second.log").read_text()
