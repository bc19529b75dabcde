"""FastStream with this broker: `MqBroker` has the interface of FastStream's brokers for Kafka, RabbitMQ, NATS and
Redis.

It uses internals of FastStream 0.7, which another version may change, so the extra `faststream` allows only 0.7.
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
