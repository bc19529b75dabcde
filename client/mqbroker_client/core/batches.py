"""A list of messages as batches: each one request, one queue, all or nothing."""

from collections.abc import Iterator, Sequence

from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.limits import DEFAULTS
from mqbroker_client.core.messages import Message
from mqbroker_client.core.results import Sent
from mqbroker_client.core.rules import BATCH_MESSAGES


class SentList(list[Sent]):
    """The result of each message, in the order of the list, and which of them went together."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Sent]] = []

    def add(self, batch: list[Sent]) -> None:
        """The results of one batch, in order."""
        self.extend(batch)
        self.batches.append(batch)


class BatchesUnfinished(BrokerError):
    """Some batches of a list were stored, `sent`, and the next one was not. Its cause says why.

    The rest may be sent again, or the whole list: what was stored is answered with `duplicate` then.
    """

    sent: SentList

    @classmethod
    def after(cls, sent: SentList, error: BrokerError, count: int) -> "BatchesUnfinished":
        """The error of the first batch that failed."""
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
    """The list in its order, cut before each message that would not fit any more; an empty list is one batch."""
    begin = size = 0
    for place, message in enumerate(messages):
        if place > begin and (place - begin == BATCH_MESSAGES or size + len(message.body) > DEFAULTS.message_bytes):
            yield messages[begin:place]
            begin, size = place, 0
        size += len(message.body)
    yield messages[begin:]
