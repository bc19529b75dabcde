"""FastStream on this broker: `MqBroker` beside its brokers of Kafka, RabbitMQ, NATS and Redis.

It goes by what FastStream 0.7 keeps for its own brokers, of which nothing is promised: the extra `faststream` pins that
series.
"""

from faststream.middlewares import AckPolicy

from mqbroker_client.faststream.broker import MqBroker
from mqbroker_client.faststream.messages import MqMessage, MqResponse
from mqbroker_client.faststream.publishers import MqPublisher
from mqbroker_client.faststream.registrators import MqRouter
from mqbroker_client.faststream.subscribers import MqSubscriber
from mqbroker_client.faststream.testing import TestMqBroker

__all__ = [
    "AckPolicy",
    "MqBroker",
    "MqMessage",
    "MqPublisher",
    "MqResponse",
    "MqRouter",
    "MqSubscriber",
    "TestMqBroker",
]
