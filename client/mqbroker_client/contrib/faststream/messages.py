"""The messages that handlers receive, and the commands with which they publish."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Self

from faststream.message import AckStatus, StreamMessage, decode_message
from faststream.response import PublishCommand, PublishType, Response

from mqbroker_client.aio import AsyncConsumer
from mqbroker_client.core.messages import Delivery, Message

# Properties for fields of FastStream's messages that the broker's messages lack. If another producer sets a property
# `reply_to`, it is only a header, not a topic to which a handler's result is sent.
CONTENT_TYPE, CORRELATION_ID = "faststream-content-type", "faststream-correlation-id"
REPLY_TO = "faststream-reply-to"
OWN = (CONTENT_TYPE, CORRELATION_ID, REPLY_TO)


@dataclass(slots=True)
class Outcome:
    """The outcome of a delivery: how it was settled, the reason of a nack, and the messages to send with its ack."""

    status: AckStatus | None = None
    error: Exception | None = None
    messages: list[Message] = field(default_factory=list)


# The outcome of the delivery whose handler is running in this context; None outside of a handler.
outcome: ContextVar[Outcome | None] = ContextVar("outcome", default=None)


class MqMessage(StreamMessage[Delivery]):
    """A delivery. Within a handler, an ack or nack is sent when the handler returns, with its published messages."""

    # The consumer that settles a message from `get_one` or from iteration at once; None for the message of a handler.
    consumer: AsyncConsumer | None = None

    async def ack(self) -> None:
        """Acks the delivery: it is done. Does nothing if it is settled."""
        if self.committed is None and self.consumer is not None:
            await self.consumer.ack([self.raw_message])
        await super().ack()
        self._note()

    async def nack(self) -> None:
        """Nacks the delivery: it comes again after the group's delay. Does nothing if it is settled."""
        if self.committed is None and self.consumer is not None:
            await self.consumer.nack([self.raw_message])
        await super().nack()
        self._note()

    async def reject(self) -> None:
        """Rejects the delivery: acks it, so that it does not come again."""
        if self.committed is None and self.consumer is not None:
            await self.consumer.ack([self.raw_message])
        await super().reject()
        self._note()

    def _note(self) -> None:
        if (own := outcome.get()) is not None:
            own.status = self.committed


class Parser:
    """Makes a FastStream message from a delivery, and decodes its body."""

    async def parse_message(self, delivery: Delivery) -> MqMessage:
        """The message, with its properties as headers. Without a correlation id, its id is the message id."""
        message = delivery.message
        properties = dict(message.properties)
        content_type, correlation_id, reply_to = (properties.pop(name, None) for name in OWN)
        return MqMessage(
            raw_message=delivery,
            body=delivery.body,
            headers=properties,
            content_type=content_type,
            reply_to=reply_to or "",
            correlation_id=correlation_id or str(message.message_id),
            message_id=str(message.message_id),
        )

    async def decode_message(self, message: StreamMessage[Any]) -> Any:
        """The body, decoded by its content type; without a content type as JSON, else as text, else as bytes."""
        return decode_message(message)


class MqPublishCommand(PublishCommand):
    """A message to publish, with `fields` of `mqbroker_client.Message`; with `session` in the session's transaction."""

    def __init__(
        self,
        body: Any,
        *,
        topic: str = "",
        fields: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        reply_to: str = "",
        session: Any = None,
        _publish_type: PublishType = PublishType.PUBLISH,
    ) -> None:
        super().__init__(
            body,
            destination=topic,
            headers=headers,
            correlation_id=correlation_id,
            reply_to=reply_to,
            _publish_type=_publish_type,
        )
        self.fields = fields or {}
        self.session = session
        # Whether the message is sent with the ack of the delivery whose handler runs.
        self.goes_with_ack = False

    @classmethod
    def from_cmd(cls, cmd: PublishCommand) -> Self:
        """The command of a handler's return value."""
        if isinstance(cmd, cls):
            return cmd
        return cls(
            cmd.body,
            topic=cmd.destination,
            headers=cmd.headers,
            correlation_id=cmd.correlation_id,
            reply_to=cmd.reply_to,
            _publish_type=cmd.publish_type,
        )

    @property
    def properties(self) -> dict[str, str]:
        """The properties to store: the argument `properties`, the headers, the correlation id and the reply topic.

        Raises ValueError for a name that is reserved for FastStream's own properties.
        """
        given = {**self.fields.get("properties", {}), **self.headers}
        if wrong := next((name for name in OWN if name in given), None):
            field = wrong.removeprefix("faststream-").replace("-", "_")
            raise ValueError(f"{wrong} is no header of yours: FastStream keeps {field} there, use another name")
        own = {CORRELATION_ID: self.correlation_id, REPLY_TO: self.reply_to}
        return {name: str(value) for name, value in {**given, **own}.items() if value}


class MqResponse(Response):
    """The answer of a handler that publishes a body with headers, and with `fields` of `mqbroker_client.Message`."""

    def __init__(
        self, body: Any, *, headers: dict[str, Any] | None = None, correlation_id: str | None = None, **fields: Any
    ) -> None:
        super().__init__(body, headers=headers, correlation_id=correlation_id)
        self.fields = fields

    def as_publish_command(self) -> MqPublishCommand:
        """The command in the form that the handler's publishers accept."""
        return MqPublishCommand(self.body, fields=self.fields, headers=self.headers, correlation_id=self.correlation_id)
