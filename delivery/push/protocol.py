"""What is pushed to a subscription's server, and how its answer is read: which messages are done and which are not."""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import msgspec
from django.conf import settings
from msgspec import Meta

from webhooks.answers import Answer

# A call holds more only when a single message does.
MAX_CALL_BYTES = 8 * 1024 * 1024
NOT_UNDERSTOOD = 'The answer is neither empty nor 200 with {"results": [{"message_id", "status": "ack" or "nack"}]}.'


@dataclass(frozen=True, slots=True)
class Pushed:
    """A delivery that is pushed: its message's id, its receipt handle, and the entry as it is told."""

    message_id: uuid.UUID
    receipt_handle: str
    told: msgspec.Raw

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Pushed":
        """From what `receives.receive` gives. The receipt stays here: the answer to the call is what settles it."""
        told = {name: value for name, value in entry.items() if name != "receipt_handle"}
        return cls(entry["message"]["message_id"], entry["receipt_handle"], msgspec.Raw(msgspec.json.encode(told)))


class Result(msgspec.Struct):
    """What the server says of one message; other fields are its own business."""

    message_id: uuid.UUID
    status: Literal["ack", "nack"]
    delay_seconds: Annotated[float, Meta(ge=0)] | None = None

    @property
    def wish(self) -> float | None:
        """How long the message shall wait; None: by the group's retry policy."""
        if self.delay_seconds is None:
            return None
        return min(self.delay_seconds, float(settings.MAX_TIMER_DELAY_SECONDS))


class Results(msgspec.Struct):
    """An answer; each result is read by itself, so that a bad one spoils no other."""

    results: list[msgspec.Raw]


@dataclass(slots=True)
class Settlement:
    """What becomes of the deliveries of one call, by their receipt handles."""

    # The answer as it counts for the subscription's health: one that cannot be understood is a failure.
    answer: Answer
    acked: list[str] = field(default_factory=list)
    nacked: defaultdict[float | None, list[str]] = field(default_factory=lambda: defaultdict(list))
    # Nobody has seen them: they are given back.
    returned: list[str] = field(default_factory=list)


def calls(entries: Sequence[dict[str, Any]], max_batch: int) -> Iterator[list[Pushed]]:
    """Entries in the order they were received, as many to a call as it may hold."""
    call: list[Pushed] = []
    size = 0
    for pushed in map(Pushed.of, entries):
        if call and (len(call) >= max_batch or size + len(bytes(pushed.told)) > MAX_CALL_BYTES):
            yield call
            call, size = [], 0
        call.append(pushed)
        size += len(bytes(pushed.told))
    if call:
        yield call


def payload(subscription: str, group: str, topic: str, call: Sequence[Pushed]) -> bytes:
    """The body of a call."""
    return msgspec.json.encode(
        {
            "type": "messages.deliver",
            "subscription": subscription,
            "group": group,
            "topic": topic,
            "messages": [pushed.told for pushed in call],
        }
    )


def settle(answer: Answer, call: Sequence[Pushed]) -> Settlement:
    """What an answer means for each delivery of a call: done only where it says so."""
    handles = [pushed.receipt_handle for pushed in call]
    if not answer.asked:
        return Settlement(answer, returned=handles)
    if answer.ok and not answer.body.strip():
        return Settlement(answer, acked=handles)
    results = _results(answer.body) if answer.status == 200 else None
    if results is None:
        understood = answer if not answer.ok else replace(answer, outcome="protocol", reason=NOT_UNDERSTOOD)
        settlement = Settlement(understood)
        settlement.nacked[None] = handles
        return settlement
    settlement = Settlement(answer)
    for pushed in call:
        result = results.get(pushed.message_id)
        if result is None:
            settlement.nacked[None].append(pushed.receipt_handle)
        elif result.status == "nack":
            settlement.nacked[result.wish].append(pushed.receipt_handle)
        else:
            settlement.acked.append(pushed.receipt_handle)
    return settlement


def _results(body: bytes) -> dict[uuid.UUID, Result] | None:
    """The results of an answer by message; None when it has none. Of two that differ the one that is no ack counts."""
    try:
        raws = msgspec.json.decode(body, type=Results).results
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found: dict[uuid.UUID, Result] = {}
    for raw in raws:
        try:
            result = msgspec.json.decode(raw, type=Result)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if result.message_id not in found or result.status == "nack":
            found[result.message_id] = result
    return found
