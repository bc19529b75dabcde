"""The protocol of push: the body of a call, and how its answer settles the messages."""

import dataclasses
import uuid
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, Self

import msgspec
from django.conf import settings
from msgspec import UNSET, Meta
from msgspec.structs import replace

from delivery.receive.deliveries import Delivery, Entry
from delivery.retries.nacks import MAX_REASON
from store.messages import StoredMessage, compression
from store.messages.texts import is_blank
from store.messages.times import encode
from store.naming import namespaces
from webhooks.endpoint_answers import Answer
from webhooks.results import NoResults, results_of

# The most bytes of the messages in a call. A single larger message has a separate call.
MAX_CALL_BYTES = 8 * 1024 * 1024
NOT_UNDERSTOOD = 'The answer is neither 204 nor 200 with {"results": [{"message_id", "status": "ack" or "nack"}]}.'
NOT_NAMED = 'The answer has no valid result for this message: "status" is "ack" or "nack", "delay_seconds" 0 or more.'
NO_REASON = "The server answered nack, without a reason."


class PushedEntry(Entry, gc=False):
    """An entry as it is pushed. It has no receipt handle, because the answer to the call settles the delivery."""

    delivery_attempt: int


@dataclass(frozen=True, slots=True)
class Pushed:
    """A delivery in a call: the message's id, the receipt handle, and the entry encoded as JSON."""

    message_id: uuid.UUID
    receipt_handle: str
    entry: msgspec.Raw

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        """Made from a delivery of `receives.receive`; a compressed body is decompressed."""
        message = _plain(delivery.message)
        entry = PushedEntry(message, delivery.queue_id, delivery.queue_offset, delivery.delivery_attempt)
        return cls(delivery.message.message_id, delivery.receipt_handle, msgspec.Raw(encode(entry)))


def _plain(message: StoredMessage) -> StoredMessage:
    """The message with its body decompressed, as text if it is UTF-8.

    The send has checked that it can be decompressed.
    """
    if message.compression is UNSET:
        return message
    body = b"".join(compression.pieces(message.compression, b64decode(message.body_base64 or b"")))
    try:
        return replace(message, body=body.decode(), body_base64=UNSET, compression=UNSET)
    except UnicodeDecodeError:
        return replace(message, body_base64=b64encode(body).decode(), compression=UNSET)


class Result(msgspec.Struct):
    """The result of one message in the server's answer; other fields are ignored. A reason is cut to MAX_REASON."""

    message_id: uuid.UUID
    status: Literal["ack", "nack"]
    delay_seconds: Annotated[float, Meta(ge=0)] | None = None
    # The reason may have any type, so that a reason that is no text does not make the whole answer unreadable.
    reason: object = None

    @property
    def retry_seconds(self) -> float | None:
        """The wait before the retry; None: by the group's retry policy."""
        if self.delay_seconds is None:
            return None
        return min(self.delay_seconds, float(settings.MAX_TIMER_DELAY_SECONDS))

    @property
    def text(self) -> str:
        """The reason of a nack; NO_REASON when the server gave no text."""
        return self.reason[:MAX_REASON] if isinstance(self.reason, str) and not is_blank(self.reason) else NO_REASON


class Nack(NamedTuple):
    """How deliveries are returned to the group after a failed call: the wait before the retry (None: by the group's
    retry policy), and the reason.
    """

    delay_seconds: float | None
    reason: str


@dataclass(slots=True)
class Settlement:
    """How the deliveries of one call are settled, by their receipt handles."""

    # The outcome of the call for the subscription's health. An answer that cannot be decoded counts as a failure.
    answer: Answer
    acked: list[str] = field(default_factory=list)
    nacked: defaultdict[Nack, list[str]] = field(default_factory=lambda: defaultdict(list))
    # Deliveries that are returned without counting a retry, because the call did not reach the server.
    returned: list[str] = field(default_factory=list)


def calls(deliveries: Sequence[Delivery], max_batch: int) -> Iterator[list[Pushed]]:
    """The deliveries as calls, in the order of receiving: at most `max_batch` messages and MAX_CALL_BYTES in a call."""
    call: list[Pushed] = []
    size = 0
    for pushed in map(Pushed.of, deliveries):
        if call and (len(call) >= max_batch or size + len(bytes(pushed.entry)) > MAX_CALL_BYTES):
            yield call
            call, size = [], 0
        call.append(pushed)
        size += len(bytes(pushed.entry))
    if call:
        yield call


async def payload(subscription: str, group: str, topic: str, call: Sequence[Pushed]) -> bytes:
    """The body of a call as JSON, with the names as the group's namespace uses them."""
    content = msgspec.json.encode(
        {
            "type": "messages.deliver",
            "subscription": subscription,
            "group": group,
            "topic": topic,
            "messages": [pushed.entry for pushed in call],
        }
    )
    return await namespaces.shown_to(group, content)


def settle(answer: Answer, call: Sequence[Pushed]) -> Settlement:
    """How the answer settles each delivery of a call. Only 204 or a result `ack` acks a delivery.

    An empty 200 acks nothing: proxies and frameworks answer so when the server's own code did not run.
    """
    handles = [pushed.receipt_handle for pushed in call]
    if not answer.asked:
        return Settlement(answer, returned=handles)
    if answer.ok and answer.status == 204:
        return Settlement(answer, acked=handles)
    results = _results(answer.body) if answer.status == 200 else None
    if results is None:
        counted = answer if not answer.ok else dataclasses.replace(answer, outcome="protocol", reason=NOT_UNDERSTOOD)
        settlement = Settlement(counted)
        settlement.nacked[Nack(None, counted.reason[:MAX_REASON])] = handles
        return settlement
    settlement = Settlement(answer)
    for pushed in call:
        result = results.get(pushed.message_id)
        if result is None:
            settlement.nacked[Nack(None, NOT_NAMED)].append(pushed.receipt_handle)
        elif result.status == "nack":
            settlement.nacked[Nack(result.retry_seconds, result.text)].append(pushed.receipt_handle)
        else:
            settlement.acked.append(pushed.receipt_handle)
    return settlement


def _results(body: bytes) -> dict[uuid.UUID, Result] | None:
    """The results of an answer by message id; None when it has none. A message with ack and nack counts as nack."""
    try:
        results = results_of(body, Result)
    except NoResults:
        return None
    found: dict[uuid.UUID, Result] = {}
    for result in results:
        if result.message_id not in found or result.status == "nack":
            found[result.message_id] = result
    return found
