"""Batches as in RocketMQ, with its error texts: one topic, one queue, consecutive offsets, all or none stored."""

import uuid

import msgspec

from scheduling.sending.results import Sent
from store.errors import BatchIllegal
from store.messages import Message
from store.naming import topics

MAX_MESSAGES = 1000


class BatchedMessage(Message, kw_only=True, forbid_unknown_fields=True):
    """A message of a batch. The fields of a transaction are only here so that a refusal can name them."""

    producer_group: str | None = None
    transaction_id: uuid.UUID | None = None
    check_immunity_seconds: float | None = None
    check_url: str | None = None


class SentBatch(msgspec.Struct):
    """The results of a batch, one for each message, in order."""

    results: list[Sent]


class SendBatch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Messages that are stored together in one queue of one topic."""

    topic: str = ""
    messages: list[BatchedMessage]

    @property
    def topic_name(self) -> str:
        """The topic of all messages. Call it after `validate`."""
        return self.topic or self.messages[0].topic

    @property
    def named_topics(self) -> set[str]:
        """All topics that the messages name."""
        return {self.topic, *[message.topic for message in self.messages]} - {""}

    def validate(self) -> None:
        """Raises BatchIllegal, with RocketMQ's reason, when the messages break a rule of batches."""
        _validate(self)


def _validate(request: SendBatch) -> None:
    if not request.messages:
        raise BatchIllegal("messages is empty: give at least one message.")
    if len(request.messages) > MAX_MESSAGES:
        raise BatchIllegal(f"messages has {len(request.messages)} messages, the limit is {MAX_MESSAGES}.")
    named = {message.topic or request.topic for message in request.messages}
    if request.topic:
        named.add(request.topic)
    for message in request.messages:
        _validate_message(message)
    if any(name.startswith(topics.RETRY_PREFIX) for name in named):
        raise BatchIllegal("Retry Group is not supported for batching")
    if len(named) > 1:
        raise BatchIllegal("The topic of the messages in one batch should be the same")


def _validate_message(message: BatchedMessage) -> None:
    if message.delay_level:
        raise BatchIllegal("TimeDelayLevel is not supported for batching")
    if message.delay_seconds is not None or message.deliver_at is not None:
        raise BatchIllegal(
            "delay_seconds and deliver_at are not supported for batching: send a delayed message in a request of "
            "its own."
        )
    if (
        message.producer_group is not None
        or message.transaction_id is not None
        or message.check_immunity_seconds is not None
        or message.check_url is not None
    ):
        raise BatchIllegal("Transactional messages are not supported for batching: use POST /v1/transactions.")
