"""Push: the broker POSTs a topic's messages to a server, and goes by what it answers."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from mqbroker_client import Consumer, Message, Producer
from standardwebhooks import Webhook

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from tests.broker import characters
from tests.broker.characters import bodies
from tests.broker.endpoints import ProducerEndpoint, Reply, says, silence
from tests.broker.forks import ForkedChild
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.push.operators import Operator
from tests.push.servers import acks, pushed, settles, texts


@pytest.fixture
def second_worker(broker: RunningBroker, tmp_path: Path) -> Iterator[ForkedChild]:
    """Another worker beside the broker's own."""
    worker = ForkedChild("second-worker", commands.worker(), broker.environment, tmp_path / "second-worker.log", ROOT)
    worker.start()
    yield worker
    worker.ask_to_stop()
    worker.stop()


def send(producer: Producer, topic: str, count: int) -> list[str]:
    """Sends messages; returns what they say."""
    said = [f"order {number}" for number in range(count)]
    for text in said:
        producer.send(topic, text.encode())
    return said


# A call that is not answered in time is repeated, message by message. A process that the machine gives no processor may
# be silent for longer than the 10 s of the default.
PATIENT = {"timeout_seconds": 60}


def is_settled(operator: Operator, name: str) -> bool:
    """Whether nothing is in flight."""
    return operator.in_flight(name) == 0


def done(operator: Operator, name: str) -> bool:
    """Whether everything was handed out, and nothing is in flight."""
    return operator.sees(name)["lag"] == 0 and is_settled(operator, name)


def test_a_message_is_pushed_signed_and_an_empty_answer_acks_it(
    operator: Operator, producer: Producer, consumer: Consumer, server: ProducerEndpoint, topic: str
) -> None:
    secret = operator.subscribes(consumer.group, topic, server.url)["secret"]
    message = Message(topic, b"order \xff", tags="paid", keys=["order-1"], properties={"region": "eu"})
    sent = producer.send_message(message)

    eventually(lambda: server.asked and done(operator, consumer.group))

    [asked] = server.asked
    assert Webhook(secret).verify(asked.body, dict(asked.headers)) == asked.document
    [entry] = asked.document["messages"]
    assert asked.document == {
        "type": "messages.deliver",
        "subscription": consumer.group,
        "group": consumer.group,
        "topic": topic,
        "messages": [entry],
    }
    assert entry == {
        "message": {
            "message_id": str(message.message_id),
            "topic": topic,
            "body_base64": "b3JkZXIg/w==",
            "tags": "paid",
            "keys": ["order-1"],
            "properties": {"region": "eu"},
            "born_at": entry["message"]["stored_at"],
            "stored_at": entry["message"]["stored_at"],
            "commit_log_offset": sent.commit_log_offset,
            "reconsume_times": 0,
        },
        "queue_id": sent.queue_id,
        "queue_offset": 0,
        "delivery_attempt": 1,
    }
    assert consumer.receive(topic) == []


def test_a_call_holds_a_batch_and_every_message_comes_once(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.subscribes(name, topic, server.url, max_batch=10, paused=True, **PATIENT)
    said = send(producer, topic, 50)

    operator.changes(name, paused=False)

    eventually(lambda: len(texts(server)) >= 50 and done(operator, name))
    assert sorted(texts(server)) == sorted(said)
    sizes = [len(asked.document["messages"]) for asked in server.asked]
    assert max(sizes) == 10
    assert len(sizes) <= 2 * math.ceil(50 / 10)


def test_each_message_is_settled_as_its_result_says(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    said: dict[str, Document | None] = {
        "done": {"status": "ack"},
        "later": {"status": "nack", "delay_seconds": 0.1},
        "again": {"status": "nack"},
        "wrong": {"status": "perhaps"},
        "left out": None,
    }
    server.replies(
        settles(lambda entry: said[entry["message"]["body"]] if entry["delivery_attempt"] == 1 else {"status": "ack"})
    )
    operator.subscribes(name, topic, server.url, max_batch=10)
    for text in said:
        producer.send(topic, text.encode())

    eventually(lambda: len(pushed(server)) == 9 and done(operator, name))

    assert Counter(texts(server)) == {"done": 1, "later": 2, "again": 2, "wrong": 2, "left out": 2}
    assert Counter(entry["delivery_attempt"] for entry in pushed(server)) == {1: 5, 2: 4}
    assert operator.state(name) == "healthy"


# Answers that ack nothing, each with the reason that the subscription keeps.
NO_ACK: dict[str, tuple[Reply, str]] = {
    "a failure": (says(500), "The endpoint answered 500."),
    "a redirect": (says(307, Location="http://127.0.0.1:1/"), "The endpoint answered 307."),
    "nothing": (says(200), "The answer is neither 204 nor 200 with"),
    "a word": (says(200, "ok"), "The answer is neither 204 nor 200 with"),
    "another document": (says(200, {"status": "ack"}), "The answer is neither 204 nor 200 with"),
    "silence": (silence(3), "The deadline of 1 s passed before its whole answer came."),
}


def test_whatever_is_no_clear_answer_acks_nothing(
    broker: RunningBroker, operator: Operator, producer: Producer, topic: str
) -> None:
    with ExitStack() as servers:
        groups = {}
        for case, (reply, _) in NO_ACK.items():
            server = servers.enter_context(ProducerEndpoint())
            server.replies(reply)
            group = groups[case] = characters.name("emails")
            operator.does("PUT", f"/v1/consumer-groups/{group}", retry_policy={"kind": "none"})
            # A server that answers has as long as it takes beside the other tests.
            operator.subscribes(group, topic, server.url, timeout_seconds=1 if case == "silence" else 30)
        producer.send(topic, b"order 1")

        for case, (_, reason) in NO_ACK.items():
            dead_letters = Consumer(broker.client(), characters.name("readers"))
            eventually(partial(operator.last_failure, groups[case]))
            assert operator.last_failure(groups[case]).startswith(reason), case
            # The failure is recorded before the nack makes the first dead letter, and its topic.
            eventually(partial(is_settled, operator, groups[case]))
            found = eventually(partial(dead_letters.receive, f"%DLQ%{groups[case]}"))
            assert bodies(found) == [b"order 1"], case
            [letter] = operator.does("GET", f"/v1/dead-letters/{groups[case]}")["results"]
            assert letter["reason"].startswith(reason), case


def test_a_server_that_is_away_costs_no_retry_and_gets_everything_when_it_is_back(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.does("PUT", f"/v1/consumer-groups/{name}", retry_policy={"kind": "none"})
    server.close()
    operator.subscribes(name, topic, server.url, max_batch=2, concurrency=2)
    said = send(producer, topic, 20)
    eventually(lambda: operator.state(name) == "open")
    assert operator.sees(name)["last_failure"].startswith("No connection")
    operator.moves_back(name, days=0)
    eventually(lambda: operator.sees(name)["failures"] > 5)

    server.open()
    operator.moves_back(name, days=0)

    eventually(lambda: len(texts(server)) >= 20 and done(operator, name))
    assert sorted(texts(server)) == sorted(said)
    assert {entry["delivery_attempt"] for entry in pushed(server)} == {1}
    assert operator.state(name) == "healthy"
    assert operator.sees(name)["failing_since"] is None


def test_an_ordered_group_keeps_its_order_also_when_its_server_is_away(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.does("PUT", f"/v1/consumer-groups/{name}", ordered=True, retry_policy={"kind": "none"})
    server.close()
    operator.subscribes(name, topic, server.url, max_batch=3)
    for number in range(12):
        producer.send(topic, f"{number % 3}:{number}".encode(), sharding_key=f"customer-{number % 3}")
    eventually(lambda: operator.state(name) == "open")

    server.open()
    operator.moves_back(name, days=0)

    eventually(lambda: len(texts(server)) >= 12 and done(operator, name))
    for customer in range(3):
        numbers = [int(text.split(":")[1]) for text in texts(server) if text.startswith(f"{customer}:")]
        assert numbers == list(range(customer, 12, 3))


def test_messages_too_large_for_one_call_come_in_several(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.subscribes(name, topic, server.url, max_batch=5, concurrency=1, timeout_seconds=10, paused=True)
    for number in range(5):
        producer.send(topic, str(number).encode() * 3_000_000)

    operator.changes(name, paused=False)

    eventually(lambda: len(texts(server)) >= 5 and done(operator, name))
    assert sorted(text[0] for text in texts(server)) == ["0", "1", "2", "3", "4"]
    assert {entry["delivery_attempt"] for entry in pushed(server)} == {1}
    assert max(len(asked.body) for asked in server.asked) < 9_000_000


def test_only_what_the_filter_wants_is_pushed(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.subscribes(name, topic, server.url, filter={"sql": "region = 'eu'"})
    producer.send(topic, b"far away", properties={"region": "us"})
    producer.send(topic, b"nearby", properties={"region": "eu"})

    eventually(lambda: server.asked and done(operator, name))

    assert texts(server) == ["nearby"]


@pytest.mark.parametrize("paused", ["subscriptions", "consumer-groups"])
def test_nothing_is_pushed_while_paused_and_everything_once_resumed(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str, paused: str
) -> None:
    with ProducerEndpoint() as witness:
        witness.replies(acks())
        operator.subscribes(name, topic, server.url)
        producer.send(topic, b"order 0")
        eventually(lambda: server.asked and done(operator, name))
        operator.does("PUT", f"/v1/{paused}/{name}", paused=True)
        server.asked.clear()
        said = send(producer, topic, 5)
        # Another subscription that begins after it, and gets its messages twice over meanwhile.
        for _ in range(2):
            operator.subscribes(other := characters.name("witness"), topic, witness.url)
            eventually(partial(done, operator, other))
        assert server.asked == []
        assert operator.sees(name)["lag"] == 5

        operator.does("PUT", f"/v1/{paused}/{name}", paused=False)

        eventually(lambda: len(texts(server)) >= 5 and done(operator, name))
        assert sorted(texts(server)) == said


def test_two_workers_push_no_message_twice(
    broker: RunningBroker,
    operator: Operator,
    producer: Producer,
    server: ProducerEndpoint,
    second_worker: ForkedChild,
    topic: str,
    name: str,
) -> None:
    server.replies(acks(after_seconds=0.3))
    operator.subscribes(name, topic, server.url, concurrency=1, **PATIENT)
    said = send(producer, topic, 200)
    eventually(lambda: operator.listeners() == len(broker.webs) + 2)

    server.replies(acks())
    operator.changes(name, max_batch=4, concurrency=4)

    eventually(lambda: len(texts(server)) >= 200 and done(operator, name))
    assert sorted(texts(server)) == sorted(said)


def test_a_subscription_that_only_fails_for_five_days_is_disabled_until_it_is_changed(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.does("PUT", f"/v1/consumer-groups/{name}", retry_policy={"kind": "table", "delay_seconds": [0]})
    server.replies(says(500))
    operator.subscribes(name, topic, server.url)
    producer.send(topic, b"order 1")
    eventually(lambda: operator.state(name) == "open")
    operator.moves_back(name, days=4.9)
    eventually(lambda: operator.sees(name)["failures"] == 6)
    assert operator.state(name) == "open"

    operator.moves_back(name, days=0.1)

    eventually(lambda: operator.state(name) == "disabled")
    server.replies(acks())
    changed = operator.changes(name)
    assert (changed["state"], changed["failing_since"]) == ("healthy", None)
    eventually(lambda: done(operator, name) and operator.sees(name)["last_success_at"])


def test_a_server_that_is_gone_for_good_disables_its_subscription(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    server.replies(says(410))
    operator.subscribes(name, topic, server.url)

    producer.send(topic, b"order 1")

    eventually(lambda: operator.state(name) == "disabled")
    assert operator.sees(name)["last_failure"] == "The endpoint answered 410."
