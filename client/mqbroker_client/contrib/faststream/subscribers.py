"""Subscribers: consumers of a group that pass each message to their handlers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from faststream._internal.configs import SubscriberSpecificationConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream._internal.endpoint.utils import process_msg
from faststream.exceptions import IncorrectState
from faststream.message import AckStatus, StreamMessage
from faststream.middlewares import AckPolicy
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as MessageSpec
from faststream.specification.schema import Operation, SubscriberSpec

from mqbroker_client.aio import AsyncBroker, AsyncConsumer
from mqbroker_client.aio.running import AsyncRunner
from mqbroker_client.contrib.faststream.connection import MqBrokerConfig
from mqbroker_client.contrib.faststream.messages import MqMessage, Outcome, Parser, outcome
from mqbroker_client.contrib.faststream.publishers import ReplyPublisher
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.handlers import Redeliver
from mqbroker_client.core.messages import Delivery, Message
from mqbroker_client.core.runs import Limits

Filter = str | Mapping[str, str] | None
#: The longest wait of one request of `get_one` and of iteration.
WAIT_SECONDS = 20.0


class NotSettled(Exception):
    """A handler nacked its message, or with AckPolicy.MANUAL did not settle it."""


@dataclass(kw_only=True)
class MqSubscriberConfig(SubscriberUsecaseConfig):
    """The topic and group of a subscriber, and its limits."""

    _outer_config: MqBrokerConfig
    topic: str
    group: str
    limits: Limits

    @property
    def ack_policy(self) -> AckPolicy:
        """By default a message whose handler raises is nacked: it is delivered again, and finally becomes a dead
        letter.
        """
        own = self._outer_config.ack_policy if self._ack_policy is EMPTY else self._ack_policy
        return AckPolicy.NACK_ON_ERROR if own is EMPTY else own


@dataclass(kw_only=True)
class MqSubscriberSpecificationConfig(SubscriberSpecificationConfig):
    """The data about a subscriber for the AsyncAPI page."""

    topic: str


class MqSubscriberSpecification(SubscriberSpecification[MqBrokerConfig, MqSubscriberSpecificationConfig]):
    """A subscriber on the AsyncAPI page."""

    @property
    def topic(self) -> str:
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def channel_labels(self) -> list[str]:
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """The schema of the types that the subscriber's handlers take."""
        message = MessageSpec(title=f"{self.name}:Message", payload=resolve_payloads(self.get_payloads()))
        operation = Operation(message=message, bindings=None)
        return {
            self.name: SubscriberSpec(
                address=self.topic, description=self.description, operation=operation, bindings=None
            )
        }


class MqSubscriber(SubscriberUsecase[Delivery]):
    """Receives the messages of a topic for a group, as `AsyncConsumer.run` does: handles several at a time, extends
    each while its handler runs, and acks it together with the messages that the handler publishes.
    """

    _outer_config: MqBrokerConfig

    def __init__(
        self, config: MqSubscriberConfig, specification: MqSubscriberSpecification, calls: CallsCollection[Delivery]
    ) -> None:
        parser = Parser()
        config.parser, config.decoder = parser.parse_message, parser.decode_message
        super().__init__(config, specification, calls)  # type: ignore[arg-type]  # its type variables are not covariant
        self._topic = config.topic
        self.group = config.group
        self.limits = config.limits
        self._stopping = asyncio.Event()
        self._run: asyncio.Task[None] | None = None

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self._topic}"

    @property
    def consumer(self) -> AsyncConsumer:
        """The consumer of the group. Raises IncorrectState without a connection."""
        config: Any = self._outer_config
        connection: AsyncBroker | None = config.broker_config.connection
        if connection is None:
            raise IncorrectState("the broker is not connected: call connect() or start() first")
        return AsyncConsumer(connection, self.group)

    async def start(self) -> None:
        """Starts receiving, if the subscriber has a handler."""
        await super().start()
        self._stopping = asyncio.Event()
        self._post_start()
        if self.calls:
            self._run = asyncio.create_task(self._receive())

    async def stop(self) -> None:
        """Ends the long poll, returns messages that no handler has begun, and waits for running handlers.

        A handler that still runs after the broker's `graceful_timeout` is cancelled, and its message comes again.
        """
        self._stopping.set()
        await super().stop()
        # A handler that stops its own subscriber must not wait for itself.
        if self._run is not None and outcome.get() is None:
            run, self._run = self._run, None
            await asyncio.wait([run])

    async def _receive(self) -> None:
        consumer = self.consumer
        # As in FastStream's own brokers, None means not to wait for handlers.
        limits = replace(self.limits, stop_seconds=self._outer_config.graceful_timeout or 0)
        try:
            if limits.ordered is None:
                limits = replace(limits, ordered=await consumer.is_ordered())
            await AsyncRunner(consumer, self.topic, self._handle, limits).run(self._stopping)
        except BrokerError as error:
            self._log(logging.ERROR, f"`{self.specification.call_name}` has ended: {error}", exc_info=error)

    async def _handle(self, delivery: Delivery) -> list[Message]:
        """Passes a delivery to the handlers. Its return acks the delivery and sends the handlers' messages."""
        own = Outcome()
        token = outcome.set(own)
        try:
            if not self.running:
                raise Redeliver(0)
            await self.consume(delivery)
        finally:
            outcome.reset(token)
        if own.status in (AckStatus.ACKED, AckStatus.REJECTED):
            return own.messages
        raise own.error or NotSettled("nacked" if own.status else "neither acked nor nacked")

    async def process_message(self, msg: Delivery) -> Any:
        """Settles a message as every subscriber does; the reason of a nack is the exception."""
        try:
            return await super().process_message(msg)
        except Exception as error:
            if (own := outcome.get()) is not None:
                own.error = error
            raise

    async def get_one(self, *, timeout: float = 5.0) -> MqMessage | None:
        """The next message, or None after `timeout` seconds. A message is hidden from the group until it is settled."""
        received = await self.consumer.receive(
            self.topic,
            max_messages=1,
            wait_seconds=min(timeout, WAIT_SECONDS),
            filter=self.limits.filter,
            invisible_seconds=self.limits.invisible_seconds,
        )
        return await self._parsed(received[0]) if received else None

    async def __aiter__(self) -> AsyncIterator[MqMessage]:
        """Yields one message after another; the caller settles each."""
        while True:
            if (message := await self.get_one(timeout=WAIT_SECONDS)) is not None:
                yield message

    async def _parsed(self, delivery: Delivery) -> MqMessage:
        parser, decoder = self._get_parser_and_decoder()
        context = self._outer_config.context
        middlewares = (one(delivery, context=context) for one in self._broker_middlewares)
        message: Any = await process_msg(msg=delivery, middlewares=middlewares, parser=parser, decoder=decoder)
        message.consumer = self.consumer
        found: MqMessage = message
        return found

    def _make_response_publisher(self, message: StreamMessage[Delivery]) -> Iterable[ReplyPublisher]:
        return (ReplyPublisher(self._outer_config, message.reply_to),)

    def get_log_context(self, message: StreamMessage[Delivery] | None) -> dict[str, str]:
        """The fields of its log lines."""
        return {"topic": self.topic, "group": self.group, "message_id": getattr(message, "message_id", "")}


def make(
    config: Any,
    about: MqSubscriberSpecificationConfig,
    group: str,
    limits: Limits,
    *,
    ack_policy: AckPolicy,
    no_reply: bool,
) -> MqSubscriber:
    """A subscriber for the owner of this configuration: a broker or a router."""
    calls = CallsCollection[Delivery]()
    settings = MqSubscriberConfig(
        _outer_config=config, topic=about.topic, group=group, limits=limits, no_reply=no_reply, _ack_policy=ack_policy
    )
    return MqSubscriber(settings, MqSubscriberSpecification(config, about, calls), calls)
