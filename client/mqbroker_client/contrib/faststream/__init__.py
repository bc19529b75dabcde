"""FastStream on this broker: `MqBroker` beside its brokers of Kafka, RabbitMQ, NATS and Redis.

It is made of internals of FastStream 0.7, which another version may change: the extra `faststream` takes 0.7 only.
"""

from faststream.middlewares import AckPolicy

from mqbroker_client.contrib.faststream.broker import MqBroker
from mqbroker_client.contrib.faststream.messages import MqMessage, MqResponse
from mqbroker_client.contrib.faststream.publishers import MqPublisher
from mqbroker_client.contrib.faststream.registrators import MqRouter
from mqbroker_client.contrib.faststream.subscribers import MqSubscriber
from mqbroker_client.contrib.faststream.testing import TestMqBroker

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
