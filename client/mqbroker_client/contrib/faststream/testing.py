"""`TestMqBroker`: for tests, runs subscribers and publishers with a broker inside the process."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, cast
from uuid import uuid4

from faststream._internal.testing.broker import TestBroker, change_producer
from faststream.message import AckStatus

from mqbroker_client.contrib.faststream.broker import MqBroker
from mqbroker_client.contrib.faststream.connection import MqProducer
from mqbroker_client.contrib.faststream.messages import MqPublishCommand, Outcome, outcome
from mqbroker_client.contrib.faststream.publishers import MqPublisher
from mqbroker_client.contrib.faststream.subscribers import MqSubscriber
from mqbroker_client.contrib.testing import MemoryBroker
from mqbroker_client.core.consumers import Consumer
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.producers import Producer


class TestMqBroker(TestBroker[MqBroker, Any], broker=MqBroker):
    """`async with TestMqBroker(broker) as broker`: published messages are handled before `publish` returns.

    A `MemoryBroker`, the attribute `memory`, applies its rules for topics, groups, retries and properties. A test may
    advance its clock; `deliver` then delivers messages that have become due. An error of a handler is raised by
    `publish`.
    """

    def __init__(self, *brokers: MqBroker, with_real: bool = False, connect_only: bool | None = None) -> None:
        super().__init__(*brokers, with_real=with_real, connect_only=connect_only)
        self.memory = MemoryBroker()

    async def deliver(self) -> None:
        """Delivers waiting messages to the subscribers, and the messages that their handlers publish."""
        subscribers = [cast("MqSubscriber", one) for broker in self.brokers for one in broker.subscribers]
        while any([await self._deliver_to(subscriber) for subscriber in subscribers]):
            pass

    async def _deliver_to(self, subscriber: MqSubscriber) -> bool:
        consumer = Consumer(self.memory, subscriber.group)
        deliveries = consumer.receive(subscriber.topic)
        for delivery in deliveries:
            if _is_wanted(subscriber, delivery):
                await self._handle(subscriber, consumer, delivery)
            else:
                consumer.ack([delivery])
        return bool(deliveries)

    async def _handle(self, subscriber: MqSubscriber, consumer: Consumer, delivery: Delivery) -> None:
        own = Outcome()
        token = outcome.set(own)
        try:
            await subscriber.process_message(delivery)
        finally:
            outcome.reset(token)
            if own.status in (AckStatus.ACKED, AckStatus.REJECTED):
                consumer.ack([delivery])
            else:
                consumer.nack([delivery])
        self.store(own.messages)

    def store(self, messages: Iterable[Message]) -> None:
        """Sends messages to the broker inside the process."""
        for message in messages:
            Producer(self.memory, "faststream").send_message(message)

    def create_publisher_fake_subscriber(self, broker: MqBroker, publisher: MqPublisher) -> tuple[MqSubscriber, bool]:
        """The subscriber that records a publisher's messages: an existing subscriber of its topic, or a new one."""
        subscribers = [cast("MqSubscriber", one) for each in self.brokers for one in each.subscribers]
        found = next((one for one in subscribers if one.topic == publisher.topic), None)
        if found is not None:
            return found, True
        return broker.subscriber(publisher.topic, group=f"test-{uuid4()}", persistent=False), False

    @contextmanager
    def _patch_producer(self, broker: MqBroker) -> Generator[None, None, None]:
        with change_producer(broker.config.broker_config, MemoryProducer(self, broker)):
            yield

    async def _fake_connect(self, broker: MqBroker, *args: Any, **kwargs: Any) -> None:
        """Does nothing: `deliver` passes the messages to the subscribers."""


def _is_wanted(subscriber: MqSubscriber, delivery: Delivery) -> bool:
    filter = subscriber.limits.filter
    if isinstance(filter, Mapping):
        raise NotImplementedError("TestMqBroker has tag expressions, and no filters of SQL: use a real broker")
    tags = [tag.strip() for tag in (filter or "*").split("||")]
    return tags == ["*"] or delivery.message.tags in tags


class MemoryProducer(MqProducer):
    """Publishes to the broker inside the process, and delivers the messages."""

    def __init__(self, test: TestMqBroker, broker: MqBroker) -> None:
        config = broker.config
        super().__init__("faststream", parser=config.broker_parser, decoder=config.broker_decoder)
        self.connect(None, config.fd_config._serializer, config.broker_codec)
        self._test = test

    async def publish(self, cmd: MqPublishCommand) -> Any:
        """Publishes as the real producer does; a session counts as committed."""
        cmd.session = None
        return await super().publish(cmd)

    async def publish_batch(self, cmd: MqPublishCommand) -> Any:
        """Sends the messages of a list."""
        self._test.store([await self.message(cmd, body) for body in cmd.body])
        await self._test.deliver()

    async def send(self, message: Message) -> Any:
        """Stores a message and delivers it."""
        sent = Producer(self._test.memory, "faststream").send_message(message)
        # Messages that a handler publishes are handled after it has returned.
        if outcome.get() is None:
            await self._test.deliver()
        return sent
