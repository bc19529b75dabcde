"""A push listener acks what its function returned from and nacks what it raised, for signed calls alone."""

import json
from datetime import UTC, datetime

import pytest
from mqbroker_client import Admin, Delivery, Producer, PushListener, Redeliver
from mqbroker_client.core.administration import new_secret
from standardwebhooks import Webhook

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.client.answers import ENTRY
from tests.client.servers import wsgi_server


def test_pushed_messages_are_handled_and_those_that_fail_come_again(broker: RunningBroker, orders: str) -> None:
    handled: list[tuple[bytes, int]] = []

    def handle(delivery: Delivery) -> None:
        handled.append((delivery.body, delivery.delivery_attempt))
        if delivery.body == b"unlucky" and delivery.delivery_attempt == 1:
            raise Redeliver(0, "no money")

    secret = new_secret()
    client = broker.client()
    Admin(client).create_topic(orders)
    Admin(client).create_consumer_group(orders)
    with wsgi_server(PushListener(handle, [secret]).wsgi) as url:
        fields = {"group": orders, "topic": orders, "url": url, "secret": secret, "max_batch": 4}
        client.call("PUT", f"/v1/subscriptions/{orders}", fields)
        for body in ("lucky", "unlucky"):
            Producer(client, orders).send(orders, body)
        eventually(lambda: sorted(handled) == [(b"lucky", 1), (b"unlucky", 1), (b"unlucky", 2)])
        client.call("DELETE", f"/v1/subscriptions/{orders}")


@pytest.mark.usefixtures("nothing_logged")
def test_a_coroutine_function_is_nacked_and_not_taken_for_done() -> None:
    async def handle(delivery: Delivery) -> None: ...

    secret, body = new_secret(), json.dumps({"messages": [ENTRY]})
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("1", now, body),
    }

    [result] = PushListener(handle, [secret]).reply(headers, body.encode()).document["results"]

    assert result["status"] == "nack"
    assert result["reason"] == (
        "TypeError: the handler returned a coroutine and nothing of it has run: give a plain function"
    )


def test_a_call_without_a_good_signature_reaches_no_function() -> None:
    handled: list[Delivery] = []
    reply = PushListener(handled.append, [new_secret()]).reply({}, b'{"messages": []}')

    assert (reply.status, handled) == (401, [])
