"""Push: a server is handed bodies as their producers had them before they were compressed."""

import base64

import pytest
from mqbroker_client import Broker, Producer

from tests.broker.endpoints import ProducerEndpoint
from tests.broker.polling import eventually
from tests.broker.running import API_KEY, RunningBroker
from tests.push.operators import Operator
from tests.push.servers import pushed


@pytest.mark.parametrize(
    ("body", "field", "pushed_as"),
    [
        (b"order " * 1000, "body", "order " * 1000),
        (b"\xff" * 5000, "body_base64", base64.b64encode(b"\xff" * 5000).decode()),
    ],
    ids=["a text", "bytes"],
)
def test_a_compressed_body_is_pushed_as_it_was_sent(
    operator: Operator,
    broker: RunningBroker,
    server: ProducerEndpoint,
    topic: str,
    name: str,
    body: bytes,
    field: str,
    pushed_as: str,
) -> None:
    operator.subscribes(name, topic, server.url)
    with Broker(broker.url, API_KEY) as packing:
        Producer(packing, name).send(topic, body)

    eventually(lambda: pushed(server))

    [entry] = pushed(server)
    assert entry["message"][field] == pushed_as
    assert "compression" not in entry["message"]
