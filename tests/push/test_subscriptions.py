"""Subscriptions as an operator keeps them."""

from typing import Any

import pytest
from mqbroker_client import Producer
from standardwebhooks import Webhook

from tests.broker import characters, metrics
from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import problem
from tests.push.operators import Operator
from tests.push.servers import acks

URL = "http://127.0.0.1:9/messages"


def test_a_new_subscription_shows_its_secret_once(operator: Operator, topic: str, name: str) -> None:
    answer = operator.asks("PUT", f"/v1/subscriptions/{name}", group=name, topic=topic, url=URL)

    assert answer.status == 201
    assert answer.document.pop("secret").startswith("whsec_")
    assert answer.document == {
        "name": name,
        "group": name,
        "topic": topic,
        "filter": None,
        "url": URL,
        "max_batch": 1,
        "timeout_seconds": 10.0,
        "concurrency": 16,
        "paused": False,
        "state": "healthy",
        "failures": 0,
        "open_until": None,
        "failing_since": None,
        "last_failure": None,
        "last_failure_at": None,
        "last_success_at": None,
        "rotated_at": None,
        "created_at": answer.document["created_at"],
        "lag": 0,
    }
    assert operator.sees(name) == answer.document


def test_a_change_keeps_what_it_does_not_name(operator: Operator, topic: str, name: str) -> None:
    operator.subscribes(name, topic, URL, max_batch=5, filter="paid || shipped", paused=True)
    before = operator.sees(name)

    answer = operator.asks("PUT", f"/v1/subscriptions/{name}", max_batch=7, filter=None)

    assert answer.status == 200
    assert answer.document == {**before, "max_batch": 7, "filter": None}


def test_subscriptions_are_listed_by_name_without_their_secrets(operator: Operator, topic: str, name: str) -> None:
    for number in range(3):
        operator.subscribes(f"{name}-{number}", topic, URL)

    after = operator.wire.get("/v1/subscriptions?limit=500").document
    listed = [one for one in after["results"] if one["name"].startswith(name)]

    assert [one["name"] for one in listed] == [f"{name}-{number}" for number in range(3)]
    assert all("secret" not in one for one in listed)


def test_a_deleted_subscription_is_gone_and_its_group_is_not(operator: Operator, topic: str, name: str) -> None:
    operator.subscribes(name, topic, URL)

    operator.does("DELETE", f"/v1/subscriptions/{name}")

    answer = operator.wire.get(f"/v1/subscriptions/{name}")
    sentence = f"There is no subscription {name}: PUT /v1/subscriptions/{name} makes it."
    assert answer.problem == problem(404, "not_found", sentence)
    assert operator.wire.get(f"/v1/consumer-groups/{name}").status == 200


def test_after_a_rotation_both_secrets_sign(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    old = operator.subscribes(name, topic, server.url)["secret"]

    new = operator.does("POST", f"/v1/subscriptions/{name}/rotate-secret")["secret"]

    assert new != old
    producer.send(topic, b"order 1")
    eventually(lambda: server.asked)
    for secret in (old, new):
        Webhook(secret).verify(server.asked[0].body, dict(server.asked[0].headers))


# What is given beside a topic that is there, and what is answered: status, code and the beginning of the sentence.
REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "no URL": ({"group": "emails"}, 422, "message_illegal", "url: missing."),
    "no group name": (
        {"group": "e mails", "url": URL},
        422,
        "message_illegal",
        "consumer group 'e mails' is not a valid",
    ),
    "no topic": ({"group": "emails", "topic": "nowhere", "url": URL}, 404, "topic_not_exist", "There is no topic"),
    "a private URL": ({"group": "emails", "url": "http://10.0.0.1/"}, 422, "message_illegal", "The URL 'http://10.0.0"),
    "another scheme": ({"group": "emails", "url": "ftp://example.com"}, 422, "message_illegal", "The URL 'ftp://examp"),
    "a bad filter": ({"group": "emails", "url": URL, "filter": "a ||"}, 422, "filter_illegal", "filter 'a ||' has no"),
    "a NUL": (
        {"group": "emails", "url": URL, "filter": {"sql": "a = '\x00'"}},
        422,
        "filter_illegal",
        "The filter",
    ),
    "a weak secret": ({"group": "emails", "url": URL, "secret": "whsec_eA=="}, 422, "message_illegal", "The secret is"),
    "too large a batch": (
        {"group": "emails", "url": URL, "max_batch": 33},
        422,
        "message_illegal",
        "max_batch: it is above 32.",
    ),
    "an unknown field": ({"group": "emails", "url": URL, "retries": 3}, 422, "message_illegal", "There is no field"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_pushed_is_refused_at_registration(operator: Operator, topic: str, name: str, case: str) -> None:
    given, status, code, sentence = REFUSED[case]

    answer = operator.asks("PUT", f"/v1/subscriptions/{name}", **{"topic": topic, **given})

    assert (answer.problem["status"], answer.problem["code"]) == (status, code)
    assert answer.problem["detail"].startswith(sentence), answer.problem["detail"]
    assert operator.wire.get(f"/v1/subscriptions/{name}").status == 404


def test_a_name_that_is_none_is_refused(operator: Operator, topic: str) -> None:
    answer = operator.asks("PUT", "/v1/subscriptions/e.mails", group="emails", topic=topic, url=URL)

    sentence = "subscription 'e.mails' is not a valid subscription name: 1 to 120 letters, digits and % | _ -."
    assert answer.problem == problem(422, "message_illegal", sentence)


def test_the_metrics_tell_how_many_are_in_which_state(
    broker: RunningBroker, operator: Operator, topic: str, name: str
) -> None:
    operator.subscribes(name, topic, URL)

    assert metrics.read(broker.url)["mqbroker_subscriptions", "healthy"] >= 1


def test_the_lag_tells_what_is_still_to_be_pushed(
    operator: Operator, producer: Producer, topic: str, name: str
) -> None:
    group = characters.name("emails")
    operator.subscribes(name, topic, URL, group=group, paused=True)

    for _ in range(3):
        producer.send(topic, b"order 1")

    assert operator.sees(name)["lag"] == 3


def test_a_group_that_is_deleted_while_it_is_pushed_is_not_made_again(
    operator: Operator, producer: Producer, server: ProducerEndpoint, topic: str, name: str
) -> None:
    operator.subscribes(name, topic, server.url, concurrency=2)
    for number in range(200):
        producer.send(topic, f"order {number}".encode())
    eventually(lambda: len(server.asked) > 20)

    operator.does("DELETE", f"/v1/consumer-groups/{name}")
    # Meanwhile the push of the deleted group reads its subscription again.
    with ProducerEndpoint() as other:
        other.replies(acks())
        operator.subscribes(f"{name}-later", topic, other.url)
        eventually(lambda: len(other.asked) == 200)

    assert operator.wire.get(f"/v1/consumer-groups/{name}").status == 404
