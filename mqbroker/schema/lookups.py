"""What the look-up of messages answers, for the schema only."""

import uuid
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from mqbroker.schema.answers import StoredMessage, TransactionEvent
from store.messages import Time


class FoundMessage(msgspec.Struct):
    """A message that was looked up. `queue_offset` is null while it is not visible: undecided, delayed, or never."""

    message: StoredMessage
    queue_id: int
    queue_offset: int | None


class FoundMessages(msgspec.Struct):
    """A page of messages, the newest first; `next` is the cursor of the next one, null on the last.

    It may hold fewer than were asked for, even none, although there are more.
    """

    results: list[FoundMessage]
    next: str | None


class TraceWait(msgspec.Struct):
    """A delay that is not over; at a delay level, or a timer."""

    topic: str
    deliver_at: Time
    delay_level: int | UnsetType = UNSET


class TraceGroup(msgspec.Struct):
    """How a consumer group stands with a message. No row is left of an ack.

    WAITING: not read yet. IN_FLIGHT: handed out, and hidden until `expires_at`. RETRYING: not acked, and offered again
    at `next_attempt_at`. PARKED: behind a failing message of its sharding key. DEAD_LETTER: given up; REDRIVEN: sent
    again since. PASSED: acked, passed over by a filter, or skipped by a reset; `passed_at` is null when that is too
    long ago.
    """

    group: str
    state: Literal["WAITING", "IN_FLIGHT", "RETRYING", "PARKED", "DEAD_LETTER", "REDRIVEN", "PASSED"]
    delivery_attempt: int
    received_at: Time | UnsetType = UNSET
    expires_at: Time | UnsetType = UNSET
    next_attempt_at: Time | UnsetType = UNSET
    passed_at: Time | UnsetType | None = UNSET


class TraceEvent(TransactionEvent, kw_only=True):
    """Something that happened to a message, told by a row that is kept.

    stored; prepared, check, end, discard and resume of its transaction; delayed, visible, retry, dead_letter and
    redriven; received where something proves a delivery, else passed. Which other fields are there depends on it.
    """

    event: Literal[
        "stored",
        "prepared",
        "check",
        "end",
        "discard",
        "resume",
        "delayed",
        "visible",
        "retry",
        "dead_letter",
        "redriven",
        "received",
        "passed",
    ]  # type: ignore[assignment]  # more happens to a message than to a transaction
    commit_log_offset: int | UnsetType = UNSET
    topic: str | UnsetType = UNSET
    queue_id: int | UnsetType = UNSET
    queue_offset: int | UnsetType = UNSET
    deliver_at: Time | UnsetType | None = UNSET
    delay_level: int | UnsetType = UNSET
    group: str | UnsetType = UNSET
    delivery_attempt: int | UnsetType = UNSET
    reconsume_times: int | UnsetType = UNSET


class Trace(msgspec.Struct):
    """What is kept of a message's life, in the order of time.

    INVISIBLE: it has no entry and waits for nothing; a timer that was recalled, or entries that retention has dropped.
    """

    message_id: uuid.UUID
    topic: str
    queue_id: int
    state: Literal["PREPARED", "ROLLED_BACK", "DISCARDED", "DELAYED", "VISIBLE", "RECALLED", "INVISIBLE"]
    events: list[TraceEvent]
    waits: list[TraceWait]
    groups: list[TraceGroup]
    transaction_id: uuid.UUID | UnsetType = UNSET
    producer_group: str | UnsetType = UNSET
