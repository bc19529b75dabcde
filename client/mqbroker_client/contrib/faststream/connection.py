"""The connection of a FastStream broker, and the producer that publishes its commands."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from fast_depends import dependency_provider
from faststream._internal.configs import BrokerConfig
from faststream._internal.constants import EMPTY
from faststream._internal.context.repository import ContextRepo
from faststream._internal.di import FastDependsConfig
from faststream._internal.endpoint.utils import ParserComposition
from faststream._internal.logger import DefaultLoggerStorage, make_logger_state
from faststream._internal.logger.logging import get_broker_logger
from faststream._internal.parser import DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import FeatureNotSupportedException, IncorrectState
from faststream.middlewares import AckPolicy

from mqbroker_client.aio import AsyncBroker, AsyncProducer
from mqbroker_client.contrib.faststream.messages import CONTENT_TYPE, MqPublishCommand, Parser, outcome
from mqbroker_client.core.messages import Message

if TYPE_CHECKING:  # needs the extra `sqlalchemy`
    from mqbroker_client.contrib.sqlalchemy import Outbox

# FastStream's own default: the seconds for running handlers at a stop.
GRACEFUL_SECONDS = 15.0
NO_OUTBOX = "session= needs the outbox that listens to it: MqBroker(…, outbox=Outbox(…))"
NO_ANSWERS = "a message broker answers no request: publish with reply_to=, and subscribe to that topic"


class MqProducer(ProducerProto[MqPublishCommand]):
    """Publishes commands: at once, with a database session's commit, or with the ack of the delivery in hand."""

    def __init__(self, group: str, outbox: "Outbox | None" = None, parser: Any = None, decoder: Any = None) -> None:
        own = Parser()
        self._parser = ParserComposition(parser, own.parse_message)
        self._decoder = ParserComposition(decoder, own.decode_message)
        self.codec = DefaultCodec()
        self.serializer: Any = None
        self._group = group
        self._outbox = outbox
        self._producer: AsyncProducer | None = None

    def connect(self, broker: AsyncBroker | None, serializer: Any, codec: Any = None) -> None:
        """Sets the connection for publishing; None: no connection."""
        self._producer = AsyncProducer(broker, self._group) if broker is not None else None
        self.serializer = serializer
        self.codec = codec or DefaultCodec()

    async def publish(self, cmd: MqPublishCommand) -> Any:
        """Sends one message. Returns the send's result; None when it is stored later, with a commit or an ack."""
        message = await self.message(cmd, cmd.body)
        if cmd.session is not None:
            if self._outbox is None:
                raise IncorrectState(NO_OUTBOX)
            fields = {**cmd.fields, "properties": message.properties}
            return self._outbox.send(cmd.session, message.topic, message.body, **fields)
        if cmd.goes_with_ack and (own := outcome.get()) is not None:
            own.messages.append(message)
            return None
        return await self.send(message)

    async def publish_batch(self, cmd: MqPublishCommand) -> Any:
        """Sends the messages of a list: all or none, in one queue."""
        messages = [await self.message(cmd, body) for body in cmd.body]
        return await self._connected.send_batch(cmd.destination, messages)

    async def request(self, cmd: MqPublishCommand) -> Any:
        """Raises FeatureNotSupportedException."""
        raise FeatureNotSupportedException(NO_ANSWERS)

    async def send(self, message: Message) -> Any:
        """Stores a message that is visible at once, or after its delay."""
        return await self._connected.send_message(message)

    async def message(self, cmd: MqPublishCommand, body: Any) -> Message:
        """Makes a message of the client from a FastStream command, with the encoded body."""
        encoded, content_type = await self.codec.encode(body, self.serializer)
        properties = cmd.properties | ({CONTENT_TYPE: content_type} if content_type else {})
        fields = {**cmd.fields, "properties": properties}
        return Message(cmd.destination, encoded, **fields)

    @property
    def _connected(self) -> AsyncProducer:
        if self._producer is None:
            raise IncorrectState("the broker is not connected: call connect() or start() first")
        return self._producer


@dataclass(kw_only=True)
class MqBrokerConfig(BrokerConfig):
    """The configuration that a broker, its routers, subscribers and publishers share."""

    producer: MqProducer = field(default_factory=lambda: MqProducer(""))
    connection: AsyncBroker | None = None

    def connect(self, connection: AsyncBroker | None) -> None:
        """Sets the connection of subscribers and publishers; None: no connection."""
        self.connection = connection
        self.producer.connect(connection, self.fd_config._serializer, self.broker_codec)


class Settings(TypedDict, total=False):
    """The settings of each FastStream broker, with FastStream's names."""

    parser: Any
    decoder: Any
    codec: Any
    dependencies: Sequence[Any]
    middlewares: Sequence[Any]
    ack_policy: AckPolicy
    graceful_timeout: float | None
    logger: Any
    log_level: int
    apply_types: bool
    serializer: Any
    provider: Any
    context: ContextRepo


def config_of(broker: object, producer: MqProducer, settings: Settings) -> MqBrokerConfig:
    """The configuration of a broker."""
    return MqBrokerConfig(
        producer=producer,
        broker_middlewares=settings.get("middlewares", ()),
        broker_parser=settings.get("parser"),
        broker_decoder=settings.get("decoder"),
        broker_codec=settings.get("codec"),
        broker_dependencies=settings.get("dependencies", ()),
        logger=make_logger_state(
            logger=settings.get("logger", EMPTY),
            log_level=settings.get("log_level", logging.INFO),
            default_storage_cls=LoggerStorage,
        ),
        fd_config=FastDependsConfig(
            use_fastdepends=settings.get("apply_types", True),
            serializer=settings.get("serializer", EMPTY),
            provider=settings.get("provider") or dependency_provider,
            context=settings.get("context") or ContextRepo(),
        ),
        graceful_timeout=settings.get("graceful_timeout", GRACEFUL_SECONDS),
        ack_policy=settings.get("ack_policy", EMPTY),
        extra_context={"broker": broker},
    )


class LoggerStorage(DefaultLoggerStorage):
    """The logger of a FastStream broker. Each line names the topic, the consumer group and the message id."""

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Does nothing: the log has no columns of fixed width."""

    def get_logger(self, *, context: ContextRepo) -> Any:
        """Creates the logger at its first use."""
        if not (found := self._get_logger_ref()):
            found = get_broker_logger(
                name="mqbroker",
                default_context={"topic": "", "group": "", "message_id": ""},
                message_id_ln=36,
                fmt="%(asctime)s %(levelname)-8s - %(topic)s | %(group)s | %(message_id)-36s - %(message)s",
                context=context,
                log_level=self.logger_log_level,
            )
            self._logger_ref.add(found)
        return found
