"""The SDK in a namespace: every call, check and push by bare names."""

import subprocess
import sys

import pytest
from mqbroker_client import Broker, Consumer, Producer

from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.namespaces.teams import CONSUMERS, PRODUCERS, TOPIC, Team
from tests.push.servers import acks


def test_a_producer_and_a_consumer_of_a_namespace_know_bare_names_alone(broker: RunningBroker, ours: Team) -> None:
    with Broker(broker.url, str(ours.calls.api_key)) as client:
        sent = Producer(client, "shop").send(TOPIC, b"bound")
        [delivery] = eventually(lambda: Consumer(client, "coupons").receive(TOPIC, wait_seconds=1))

    assert (sent.topic, delivery.message.topic, delivery.message.body) == (TOPIC, TOPIC, b"bound")


def test_a_client_names_its_namespace(broker: RunningBroker, ours: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQBROKER_URL", broker.url)
    monkeypatch.setenv("MQBROKER_API_KEY", "mq_of_the_tests")
    monkeypatch.setenv("MQBROKER_NAMESPACE", ours.namespace)
    with Broker.from_env() as client:
        assert Producer(client, "shop").send(TOPIC, b"named").topic == TOPIC
        assert [one["name"] for one in client.call("GET", "/v1/topics")["results"]] == [TOPIC]
    words = [sys.executable, "-m", "mqbroker_client.contrib.cli", "topics"]
    listed = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True).stdout
    assert TOPIC in listed.split()
    assert "%" not in listed

    assert {one["message"]["body"] for one in ours.receives()} == {"named"}


def test_a_namespace_that_no_header_may_hold_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="namespace"):
        Broker("http://127.0.0.1:1", "mq_x", namespace="a%b")


def test_a_check_and_a_push_name_things_as_the_namespace_does(ours: Team) -> None:
    with ProducerEndpoint() as server:
        server.replies(states("COMMIT"))
        assert ours.calls.put(f"/v1/producer-groups/{PRODUCERS}").status == 201
        assert ours.calls.make(f"/v1/producer-groups/{PRODUCERS}/endpoints", url=server.url).status == 201
        begun = ours.begins(check_immunity_seconds=0)
        ours.calls.make(f"/v1/transactions/{begun['transaction_id']}/check")
        [asked] = eventually(lambda: server.about(begun["transaction_id"]))
        assert (server.asked[0].document["producer_group"], asked["topic"]) == (PRODUCERS, TOPIC)
    with ProducerEndpoint() as server:
        server.replies(acks())
        subscribed = ours.calls.put("/v1/subscriptions/emails", group=CONSUMERS, topic=TOPIC, url=server.url)
        assert (subscribed.status, subscribed.document["name"]) == (201, "emails")
        pushed = eventually(lambda: server.asked)[0].document
        assert (pushed["subscription"], pushed["group"], pushed["topic"]) == ("emails", CONSUMERS, TOPIC)
        assert [one["message"]["topic"] for one in pushed["messages"]] == [TOPIC]
        assert [one["name"] for one in ours.calls.walks("/v1/subscriptions")] == ["emails"]
        assert ours.calls.delete("/v1/subscriptions/emails").status == 204
