"""A queue of an ordered group stands for no longer than what failed there asks for: an outage asks for nothing more."""

from functools import partial
from typing import Any

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer

from tests.broker.characters import bodies
from tests.broker.polling import eventually
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire

HOUR = {"kind": "table", "delay_seconds": [3600.0]}
LEVELS = {"kind": "table"}
SECOND = {"kind": "table", "delay_seconds": [1.0]}


def waits(broker: RunningBroker, topic: str, group: str) -> list[float]:
    """How long each message that the group holds waits from now on, in whole seconds, up."""
    asked = """
        SELECT ceil(extract(epoch FROM r.expires_at - now())) FROM receipt AS r
        JOIN consumer_group AS g ON g.id = r.group_id WHERE g.name = %s AND r.state = 'held'
    """
    with psycopg.connect(broker.database_of(topic), autocommit=True) as connection:
        return [max(float(seconds), 0) for (seconds,) in connection.execute(asked, [group])]


def its_time_passes(broker: RunningBroker, topic: str, group: str) -> list[float]:
    """Lets the delivery in flight be over; the waits of what is held behind that."""
    let_deliveries_expire(broker, topic, group)
    return eventually(partial(waits, broker, topic, group))


@pytest.mark.parametrize("policy", [None, LEVELS, HOUR], ids=["default", "levels", "an hour"])
def test_a_queue_goes_on_at_once_behind_deliveries_that_only_expired(
    broker: RunningBroker, producer: Producer, consumer: Consumer, orders: str, policy: dict[str, Any] | None
) -> None:
    own: dict[str, Any] = {} if policy is None else {"retry_policy": policy}
    Admin(broker.client()).create_consumer_group(consumer.group, ordered=True, **own)
    for body in (b"1", b"2", b"3"):
        producer.send(orders, body, queue_id=0)

    stood, attempts = list[float](), list[int]()
    for _ in range(6):
        [delivery] = consumer.receive(orders, max_messages=1, wait_seconds=10)
        attempts.append(delivery.delivery_attempt)
        stood += its_time_passes(broker, orders, consumer.group)
    [delivery] = consumer.receive(orders, max_messages=1)
    consumer.ack([delivery])

    assert stood == [0] * 6
    assert [*attempts, delivery.delivery_attempt] == [1, 2, 3, 4, 5, 6, 7]
    assert delivery.body == b"1"
    assert bodies(consumer.receive(orders)) == [b"2", b"3"]


@pytest.mark.parametrize(
    ("policy", "shown", "seconds"),
    # The third delay level of the tests' broker is a second, too.
    [(None, SECOND, 1), (LEVELS, LEVELS, 1), (HOUR, HOUR, 3600), (SECOND, SECOND, 1)],
    ids=["default", "levels", "an hour", "a second"],
)
def test_a_message_that_fails_waits_for_the_groups_policy_and_by_default_for_a_second(
    broker: RunningBroker,
    wire: Wire,
    producer: Producer,
    consumer: Consumer,
    orders: str,
    policy: dict[str, Any] | None,
    shown: dict[str, Any],
    seconds: float,
) -> None:
    own: dict[str, Any] = {} if policy is None else {"retry_policy": policy}
    Admin(broker.client()).create_consumer_group(consumer.group, ordered=True, **own)
    producer.send(orders, b"1", queue_id=0)

    consumer.nack(consumer.receive(orders))

    [wait] = waits(broker, orders, consumer.group) or [0]
    # A busy machine may look late.
    assert wait <= seconds
    assert seconds == 1 or wait > 1
    assert wire.get(f"/v1/consumer-groups/{consumer.group}").document["retry_policy"] == shown


@pytest.mark.parametrize(
    ("given", "then"),
    [({}, SECOND), ({"retry_policy": HOUR}, HOUR), ({"retry_policy": {"kind": "none"}}, {"kind": "none"})],
    ids=["default", "an hour", "none"],
)
def test_a_group_that_becomes_ordered_has_the_default_of_ordered_groups_or_its_own_policy(
    broker: RunningBroker, wire: Wire, consumer: Consumer, given: dict[str, Any], then: dict[str, Any]
) -> None:
    admin = Admin(broker.client())
    admin.create_consumer_group(consumer.group, **given)
    path = f"/v1/consumer-groups/{consumer.group}"
    before = wire.get(path).document["retry_policy"]

    admin.create_consumer_group(consumer.group, ordered=True)
    ordered = wire.get(path).document["retry_policy"]
    admin.create_consumer_group(consumer.group, ordered=False)

    assert before == given.get("retry_policy", LEVELS)
    assert ordered == then
    assert wire.get(path).document["retry_policy"] == before
