# Generated from aio/receipts.py by client/synchronous.py: change that file, then run the script.
"""Settling received messages by their receipts: ack, nack, return, extend."""

import logging
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from mqbroker_client.core import errors
from mqbroker_client.core.calls import consumer as calls
from mqbroker_client.core.connection import Broker
from mqbroker_client.core.handlers import delay_seconds, reason_of
from mqbroker_client.core.messages import Delivery, Message, handles_of
from mqbroker_client.core.results import Sent, Settled
from mqbroker_client.core.retries import PASSING
from mqbroker_client.core.threads import pause

# The logger has the name of the module that runs consumers, which a program knows.
log = logging.getLogger("mqbroker_client.core.running")

#: The pause between two rounds of attempts to settle a delivery.
SETTLE_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Receipts:
    """The receipts of one consumer group."""

    broker: Broker
    group: str

    def ack(self, deliveries: Iterable[Delivery]) -> list[Settled]:
        """Ack deliveries: a delivery with the status 200 is done, and never comes again to the group.

        Status 410: the invisible time was over, and the message is or was handed out again.
        """
        handles = handles_of(deliveries)
        return self.broker.do(calls.ack(self.group, handles)) if handles else []

    def forward(self, deliveries: Iterable[Delivery], messages: Sequence[Message]) -> list[Sent]:
        """Ack deliveries and send at most 128 messages that were made of them: both are done, or neither is.

        Returns the result of each message, in the order given. A second call with the same `Message` objects stores
        nothing new. Raises `ReceiptExpired` if an invisible time was over: then nothing was sent, and the message comes
        again. Also raises the errors of a send.
        """
        handles = handles_of(deliveries)
        return self.broker.do(calls.forward(self.group, handles, messages, self.broker.compression))

    def nack(
        self, deliveries: Iterable[Delivery], *, delay_seconds: float | None = None, reason: str | None = None
    ) -> list[Settled]:
        """Nack deliveries: they come again after `delay_seconds`, or else after the delay of the group's retry policy.

        After the group's last retry a message is a dead letter. The reason, at most 1,000 characters, is kept with the
        message's trace. Returns statuses like `ack`.
        """
        handles = handles_of(deliveries)
        nack = calls.nack(self.group, handles, delay_seconds=delay_seconds, reason=reason)
        return self.broker.do(nack) if handles else []

    def give_back(self, deliveries: Iterable[Delivery]) -> list[Settled]:
        """Return deliveries that were not begun: they come again at once, and no retry is counted.

        Returns statuses like `ack`.
        """
        handles = handles_of(deliveries)
        return self.broker.do(calls.give_back(self.group, handles)) if handles else []

    def extend(self, deliveries: Iterable[Delivery], *, invisible_seconds: float) -> list[Settled]:
        """Extend deliveries: they stay hidden from the group for `invisible_seconds` from now.

        Returns statuses like `ack`.
        """
        handles = handles_of(deliveries)
        return self.broker.do(calls.extend(self.group, handles, invisible_seconds)) if handles else []


def settle(
    receipts: Receipts,
    topic: str,
    delivery: Delivery,
    error: BaseException | None,
    messages: Sequence[Message] = (),
    *,
    stopping: threading.Event,
) -> None:
    """Ack a handled delivery together with the messages that the handler returned, or nack it with the handler's error.

    If the messages cannot be sent, this counts as an error of the handler. A temporary refusal, for instance because a
    topic is closed, is tried again until a stop, because the work is done and must not count a retry. A failure is only
    logged.
    """
    while True:
        try:
            if error is None and messages:
                error = _forwarded(receipts, delivery, messages)
            elif error is None:
                receipts.ack([delivery])
            if error is not None:
                receipts.nack([delivery], delay_seconds=delay_seconds(error), reason=reason_of(error))
            return
        except Exception as problem:  # noqa: BLE001 also for a delay that is not a number: the thread continues
            waits = isinstance(problem, PASSING) and not stopping.is_set()
            becomes = "waits" if waits else "comes again"
            log.warning("message %s of %s %s: %s", delivery.message.message_id, topic, becomes, problem)
            if not waits:
                return
        pause(stopping, SETTLE_PAUSE_SECONDS)


def _forwarded(receipts: Receipts, delivery: Delivery, messages: Sequence[Message]) -> Exception | None:
    """Send the messages with the ack. Returns None, or the error with which the delivery has to be nacked.

    Raises temporary errors, and ReceiptExpired, after which the delivery comes again.
    """
    try:
        receipts.forward([delivery], messages)
    except (*PASSING, errors.ReceiptExpired):
        raise
    except Exception as problem:  # noqa: BLE001  what the client itself refuses, as a time without a zone, too
        log.error("what was made of message %s was not sent: %s", delivery.message.message_id, problem)
        return problem
    return None


def give_back(receipts: Receipts, topic: str, deliveries: Collection[Delivery]) -> None:
    """Return deliveries that no handler has begun; a failure is only logged."""
    try:
        receipts.give_back(deliveries)
    except errors.BrokerError as error:
        log.warning("%d messages of %s come again later: %s", len(deliveries), topic, error)


def keep(receipts: Receipts, topic: str, deliveries: Collection[Delivery], *, invisible_seconds: float) -> None:
    """Extend the deliveries that handlers have; a failure is only logged."""
    try:
        receipts.extend(deliveries, invisible_seconds=invisible_seconds)
    except errors.BrokerError as error:
        log.warning("%d messages of %s were not extended: %s", len(deliveries), topic, error)
