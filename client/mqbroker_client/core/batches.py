"""Splits a list of messages into batches: each batch is one request, goes to one queue, and is stored completely or not
at all.
"""

from collections.abc import Iterator, Sequence

from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.limits import DEFAULTS
from mqbroker_client.core.messages import Message
from mqbroker_client.core.results import Sent
from mqbroker_client.core.rules import BATCH_MESSAGES


class SentList(list[Sent]):
    """The results of a list of messages in the list's order, and which messages were sent in one batch."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Sent]] = []

    def add(self, batch: list[Sent]) -> None:
        """Adds the results of one batch, in order."""
        self.extend(batch)
        self.batches.append(batch)


class BatchesUnfinished(BrokerError):
    """Some batches of a list were stored (`sent`), but the next one was not; the exception's cause says why.

    The rest or the whole list may be sent again: messages that were already stored are answered with `duplicate`.
    """

    sent: SentList

    @classmethod
    def after(cls, sent: SentList, error: BrokerError, count: int) -> "BatchesUnfinished":
        """The error for the first batch that failed."""
        made = cls(
            f"{len(sent)} of {count} messages were stored, in {len(sent.batches)} batches: {error.detail}",
            status=error.status,
            code=error.code,
            request_id=error.request_id,
            retry_after_seconds=error.retry_after_seconds,
            problem=error.problem,
        )
        made.sent = sent
        return made


def split(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """Splits the list into batches in its order, each as large as possible; an empty list gives one empty batch."""
    begin = size = 0
    for place, message in enumerate(messages):
        if place > begin and (place - begin == BATCH_MESSAGES or size + len(message.body) > DEFAULTS.message_bytes):
            yield messages[begin:place]
            begin, size = place, 0
        size += len(message.body)
    yield messages[begin:]
