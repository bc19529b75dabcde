"""Answers the broker's signed pushes, as a WSGI or an ASGI application."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mqbroker_client.core import tracing
from mqbroker_client.core.checks import SignedListener, listed
from mqbroker_client.core.documents import Document, given
from mqbroker_client.core.handlers import Handler, delay_seconds, reason_of, require_run
from mqbroker_client.core.hooks import Hook, entered, handled
from mqbroker_client.core.messages import Delivery

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PushListener(SignedListener):
    """Answers signed `messages.deliver` calls at a subscription's URL, as a `SignedListener`.

    A message is acked when the handler returns. If the handler raises an exception, the message is nacked with the
    exception as its reason; `Redeliver(seconds)` sets the delay. A pushed delivery has no receipt handle, because the
    answer to the call acks or nacks it.
    """

    EVENT = "messages.deliver"
    handler: Handler
    secrets: Sequence[str] = field(repr=False)
    #: Hooks that run around each handling, after OpenTelemetry's.
    hooks: Sequence[Hook] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "secrets", listed(self.secrets, "a push listener", "the subscription"))

    def _read(self, event: Any) -> Sequence[Delivery]:
        return [Delivery.read({"receipt_handle": "", **entry}) for entry in event["messages"]]

    def _results(self, read: Sequence[Delivery]) -> list[Document]:
        return [self._result(delivery) for delivery in read]

    def _result(self, delivery: Delivery) -> Document:
        named: Document = {"message_id": str(delivery.message.message_id)}
        try:
            context = handled(None, delivery.message.topic, delivery)
            with entered((*tracing.HOOKS, *self.hooks), context):
                context.result = self.handler(delivery)
                require_run(context.result, "give a plain function")
        except Exception as error:
            log.exception("message %s was not handled", delivery.message.message_id)
            failed = {"status": "nack", "reason": reason_of(error)}
            return named | failed | given(delay_seconds=delay_seconds(error))
        return named | {"status": "ack"}
