"""Publishers: they send a handler's return value to a topic."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from faststream._internal.configs import PublisherSpecificationConfig, PublisherUsecaseConfig
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream.exceptions import FeatureNotSupportedException
from faststream.response import PublishCommand
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message, Operation, PublisherSpec

from mqbroker_client.contrib.faststream.connection import NO_ANSWERS, MqBrokerConfig
from mqbroker_client.contrib.faststream.messages import MqPublishCommand


@dataclass(kw_only=True)
class MqPublisherConfig(PublisherUsecaseConfig):
    """A topic, and the headers and `fields` of `mqbroker_client.Message` for all messages of the publisher."""

    _outer_config: MqBrokerConfig
    topic: str
    # The headers are not shown, because they may contain a secret.
    headers: dict[str, Any] = field(default_factory=dict, repr=False)
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class MqPublisherSpecificationConfig(PublisherSpecificationConfig):
    """The data about a publisher for the AsyncAPI page."""

    topic: str


class MqPublisherSpecification(PublisherSpecification[MqBrokerConfig, MqPublisherSpecificationConfig]):
    """A publisher on the AsyncAPI page."""

    @property
    def topic(self) -> str:
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def name(self) -> str:
        return self.config.title_ or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """The schema of the types that the publisher's handlers return."""
        payload = resolve_payloads(self.get_payloads(), "Publisher")
        message = Message(title=f"{self.name}:Message", payload=payload)
        operation = Operation(message=message, bindings=None)
        return {
            self.name: PublisherSpec(
                address=self.topic, description=self.config.description_, operation=operation, bindings=None
            )
        }


class MqPublisher(PublisherUsecase):
    """Publishes to one topic. As a decorator it sends a handler's return value with the ack of the delivery."""

    _outer_config: MqBrokerConfig

    def __init__(self, config: MqPublisherConfig, specification: MqPublisherSpecification) -> None:
        super().__init__(config, specification)  # type: ignore[arg-type]  # its type variables are not covariant
        self._topic = config.topic
        self.headers = config.headers
        self.fields = config.fields

    @property
    def topic(self) -> str:
        """The topic, with the prefixes of its routers."""
        return f"{self._outer_config.prefix}{self._topic}"

    async def publish(
        self,
        message: Any,
        topic: str = "",
        *,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        session: Any = None,
        **fields: Any,
    ) -> Any:
        """Publishes a message at once, like `MqBroker.publish`, by default to the publisher's own topic."""
        cmd = MqPublishCommand(
            message,
            topic=topic or self.topic,
            fields=self.fields | fields,
            headers=self.headers | (headers or {}),
            correlation_id=correlation_id or self._outer_config.id_generator(),
            reply_to=reply_to,
            session=session,
        )
        return await self._basic_publish(cmd, producer=self._outer_config.producer, _extra_middlewares=())

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> None:
        """Publishes a handler's return value."""
        own = MqPublishCommand.from_cmd(cmd)
        own.destination = own.destination or self.topic
        own.add_headers(self.headers, override=False)
        own.fields = self.fields | own.fields
        own.goes_with_ack = True
        producer = self._outer_config.producer
        await self._basic_publish(own, producer=producer, _extra_middlewares=_extra_middlewares)

    async def request(self, message: Any, *args: Any, **more: Any) -> Any:
        """Raises FeatureNotSupportedException."""
        raise FeatureNotSupportedException(NO_ANSWERS)


class ReplyPublisher(FakePublisher):
    """Publishes a handler's return value to the reply topic of its message, together with the ack of the delivery."""

    def __init__(self, config: MqBrokerConfig, topic: str) -> None:
        super().__init__(producer=config.producer)
        self.topic = topic

    def patch_command(self, cmd: PublishCommand) -> MqPublishCommand:
        """The command with its topic."""
        own = MqPublishCommand.from_cmd(super().patch_command(cmd))
        own.destination = self.topic
        own.goes_with_ack = True
        return own
