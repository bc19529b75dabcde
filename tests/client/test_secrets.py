"""No repr of the client shows a secret: of what a program logs, a key or a handle must not be a part."""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass

import mqbroker_client
import pytest
from mqbroker_client import CheckListener, Consumer, Producer, PushListener
from mqbroker_client.core.administration import Endpoint, new_secret
from mqbroker_client.core.calls.administration import register_endpoint
from mqbroker_client.core.requests import Requests

from tests.broker.running import API_KEY, RunningBroker

# What a field is named that holds a secret, an API key, or a handle by which a stranger settles or recalls a message.
SECRET = {"secret", "secrets", "api_key", "check_secrets", "receipt_handle", "recall_handle", "headers", "content"}


def fields_of_the_client() -> Iterator[tuple[str, "Field[object]"]]:
    """Each field of each dataclass, with the name of its class."""
    for module in pkgutil.walk_packages(mqbroker_client.__path__, "mqbroker_client."):
        # The rest of the Django app wants a Django project.
        if module.name.endswith("__main__") or (".django." in module.name and not module.name.endswith("options")):
            continue
        for kind in vars(importlib.import_module(module.name)).values():
            if isinstance(kind, type) and is_dataclass(kind):
                yield from ((kind.__name__, one) for one in fields(kind))


def test_no_field_that_holds_a_secret_is_shown() -> None:
    held = {(kind, one.name, one.repr) for kind, one in fields_of_the_client() if one.name in SECRET}

    assert {kind for kind, *_ in held} >= {"Endpoint", "CheckListener", "Options", "Delivery", "Call", "Request"}
    assert [(kind, name) for kind, name, shown in held if shown] == []


def test_what_a_program_logs_shows_no_secret() -> None:
    secret = new_secret()
    call = register_endpoint("shop", "http://127.0.0.1:9000/checks", secret, {})
    request = Requests(API_KEY).of(call)
    shown = [
        Endpoint("1", "http://127.0.0.1:9000/checks", secret),
        CheckListener(lambda half: None, [secret]),
        PushListener(lambda delivery: None, [secret]),
        call,
        request,
    ]

    for one in shown:
        assert secret not in repr(one)
        assert API_KEY not in repr(one)
        assert API_KEY not in str(one)


def test_a_delivery_shows_no_handle(broker: RunningBroker, orders: str) -> None:
    producer, consumer = Producer(broker.client(), orders), Consumer(broker.client(), orders)
    sent = producer.send(orders, b"later", delay_seconds=60)
    producer.send(orders, b"now")
    [delivery] = consumer.receive(orders, wait_seconds=5)
    [settled] = consumer.ack([delivery])

    assert sent.recall_handle is not None
    assert sent.recall_handle not in repr(sent)
    for one in (delivery, settled):
        assert delivery.receipt_handle not in repr(one)


@pytest.mark.parametrize("key", ["mq_my secret", "mq_\nsecret"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(ValueError, match="API key") as raised:
        Requests(key)

    assert "secret" not in str(raised.value)
