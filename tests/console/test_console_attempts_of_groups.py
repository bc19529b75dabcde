"""Promises about failing messages: the group's page and the overview count and name what waits for its next attempt."""

from datetime import timedelta

import pytest

from tests.broker.ids import id_of
from tests.console.operators import Operator
from tests.console.rows import Broker


def failed(broker: Broker, group: int, topic: int, messages: int) -> None:
    """Messages of a topic that its group was handed and gave back for an hour, two minutes ago."""
    retries = broker.topic("%RETRY%mail", queues=1)
    broker.connection.execute("DELETE FROM retry_queue")
    broker.insert("retry_queue", group_id=group, topic_id=topic, queue_id=0, topic_name="orders")
    for _ in range(messages):
        message = broker.stored(topic, 0, b"x", timedelta(minutes=3))
        timer = {"log_segment": broker.segment, "log_offset": message.log_offset, "tags_code": 0, "reconsume_times": 1}
        due = {"id": id_of(broker.now - timedelta(minutes=2)), "due_at": broker.now + timedelta(hours=1)}
        broker.insert("timer", topic_id=retries, queue_id=0, **due, **timer)


@pytest.mark.parametrize(
    ("messages", "handed_since", "is_finding"),
    [(30, 0, True), (30, 20, True), (30, 4000, False)],
    ids=["all fail", "most fail", "few of many fail"],
)
def test_a_group_that_fails_on_most_of_what_it_is_handed_needs_attention(
    broker: Broker, ada: Operator, messages: int, handed_since: int, is_finding: bool
) -> None:
    orders, mail = broker.topic("orders", queues=1), broker.consumer_group("mail")
    failed(broker, mail, orders, messages)
    for move, next_offset, ago in ((1, 30, timedelta(minutes=3)), (2, 30 + handed_since, timedelta())):
        place = {"segment_id": broker.segment, "reader_id": mail, "topic_id": orders, "queue_id": 0}
        broker.insert("progress", move=move, next_offset=next_offset, moved_at=broker.now - ago, **place)

    page, overview = ada.sees("consumer-groups/mail/"), ada.sees("")

    assert page.table("retrying")[0][:2] == ["orders", str(messages)]
    [row] = overview.table("consumer-groups")
    assert (row[0], row[-1]) == ("mail", str(messages))
    assert ("mail fails on what it is handed" in overview.text) == is_finding
    assert (f"{messages} messages failed and wait for the next attempt, the next at" in overview.text) == is_finding


@pytest.mark.parametrize(
    ("sharding_key", "behind", "what"),
    [
        ("", 1, "Queue 0 of mail waits behind message"),
        ("a", 1, "The key a of queue 0 of mail waits behind message"),
        ("a", 0, None),
    ],
    ids=["a queue", "a key", "nothing behind"],
)
def test_a_queue_that_stands_behind_a_message_is_named_with_it(
    broker: Broker, ada: Operator, sharding_key: str, behind: int, what: str | None
) -> None:
    orders, mail = broker.topic("orders", queues=1), broker.consumer_group("mail", ordered=True)
    messages = [broker.stored(orders, 0, b"x", timedelta(minutes=3)) for _ in range(1 + behind)]
    for message in messages:
        broker.visible(message)
    broker.progress(mail, orders, 0, len(messages))
    for offset, state in enumerate(["held", "parked"][: len(messages)]):
        broker.receipt(mail, orders, 0, offset, state, sharding_key)
    broker.connection.execute("UPDATE receipt SET log_offset = %s WHERE state = 'held'", (messages[0].log_offset,))

    page, overview = ada.sees("consumer-groups/mail/"), ada.sees("")

    until = f"{broker.now + timedelta(minutes=1):%Y-%m-%d %H:%M:%S} UTC"
    assert (what is not None) == ("waits behind message" in overview.text) == ("waits behind message" in page.text)
    assert what is None or f"{what} {messages[0].message_id} until {until}" in overview.text
