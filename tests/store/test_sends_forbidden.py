"""A topic that takes no messages until a time: sends are refused with it, and all that was begun before goes on."""

from datetime import UTC, datetime, timedelta

import pytest
from mqbroker_client import Admin, Broker, Consumer, Producer, Retry
from mqbroker_client.core.errors import SendsForbidden

from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Wire


def put(wire: Wire, topic: str, sends_from: datetime | None) -> None:
    answer = wire.call("PUT", f"/v1/topics/{topic}", b'{"sends_from": %s}' % _json(sends_from))
    assert answer.status in (200, 201), answer


def _json(moment: datetime | None) -> bytes:
    return b"null" if moment is None else f'"{moment.isoformat()}"'.encode()


@pytest.fixture
def until() -> datetime:
    return (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)


def test_sends_are_refused_with_the_time_and_ends_and_receives_go_on(
    wire: Wire, producer: Producer, consumer: Consumer, orders: str, until: datetime
) -> None:
    producer.send(orders, b"before")
    begun = producer.begin(orders, b"half")

    put(wire, orders, until)

    shown = until.isoformat().replace("+00:00", "Z")
    message = {"topic": orders, "body": "x"}
    for path, document in (
        ("/v1/messages", message),
        ("/v1/messages/batch", {"topic": orders, "messages": [{"body": "x"}]}),
        ("/v1/transactions", {**message, "producer_group": producer.group}),
        ("/v1/messages", {**message, "delay_seconds": 5}),
    ):
        refused = wire.post(path, document)
        assert (refused.status, refused.problem["code"]) == (503, "sends_forbidden")
        assert refused.problem["detail"].startswith(f"The topic {orders} takes no messages until {shown}: ")
        assert 3500 < int(refused.headers["retry-after"]) <= 3600
    [of_bulk] = wire.bulk({"op": "send", **message})
    assert (of_bulk["status"], of_bulk["code"]) == (503, "sends_forbidden")
    begun.commit()
    received = [delivery.body for _ in range(2) for delivery in consumer.receive(orders, wait_seconds=5)]
    assert sorted(received) == [b"before", b"half"]
    assert datetime.fromisoformat(wire.get(f"/v1/topics/{orders}").document["sends_from"]) == until


@pytest.mark.parametrize("ended_by", ["null", "a time that has come"])
def test_the_topic_takes_messages_again(
    broker: RunningBroker, producer: Producer, orders: str, until: datetime, ended_by: str
) -> None:
    Admin(broker.client()).create_topic(orders, sends_from=until.isoformat())
    with pytest.raises(SendsForbidden):
        Producer(Broker(broker.url, API_KEY, retry=Retry(tries=5, seconds=2)), "shop").send(orders, b"x")

    put(broker.wire(), orders, None if ended_by == "null" else datetime.now(UTC) - timedelta(seconds=1))

    assert producer.send(orders, b"x").queue_offset == 0
