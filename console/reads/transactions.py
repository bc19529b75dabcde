"""One transaction: where it stands, what it holds, and all that happened to it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings

from console.reads import messages
from transactions.models import CheckAttempt, Endpoint, HalfMessage, Operation, ProducerGroup

# The newest of each kind are shown; a transaction is asked 15 times by default, and again after each resume.
HISTORY = 200
MESSAGES = 20
DECIDES = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}


@dataclass(frozen=True)
class Member:
    """A message of a transaction, its place in the log, and where a commit made it visible."""

    message_id: UUID
    log_offset: int
    queue_id: int
    queue_offset: int | None
    message: messages.Message | None


@dataclass(frozen=True)
class Event:
    """Something that happened to a transaction: it was prepared, it was asked about, something was said of it."""

    at: datetime
    kind: str
    check: CheckAttempt | None = None
    operation: Operation | None = None


@dataclass(frozen=True)
class Transaction:
    """All that a page shows of one transaction."""

    transaction_id: UUID
    state: str
    producer_group: ProducerGroup | None
    stored_at: datetime
    check_times: int
    check_max: int
    half: HalfMessage | None
    endpoint: Endpoint | None
    members: list[Member]
    more_members: int
    history: list[Event]


def find(transaction_id: UUID) -> Transaction | None:
    """The transaction of this id, or None when neither its half message nor its end is kept."""
    half = HalfMessage.objects.filter(transaction_id=transaction_id).first()
    operations = list(Operation.objects.filter(transaction_id=transaction_id).order_by("-operation_id")[:HISTORY])
    end = next((operation for operation in operations if operation.decision in DECIDES), None)
    if end is not None:
        # Read after the half message, so it ended in between: the decision is final.
        half = None
    held: HalfMessage | Operation | None = end or half
    if held is None:
        return None
    return Transaction(
        transaction_id=transaction_id,
        state=state(held),
        producer_group=ProducerGroup.objects.filter(id=held.producer_group_id).first(),
        stored_at=held.stored_at,
        check_times=held.check_times,
        check_max=settings.TRANSACTION_CHECK_MAX,
        half=half,
        endpoint=Endpoint.objects.filter(id=half.endpoint_id).first() if half and half.endpoint_id else None,
        members=members(held),
        more_members=max(0, len(held.message_ids) - MESSAGES),
        history=history(held, operations),
    )


def state(held: HalfMessage | Operation) -> str:
    """The state of a transaction by its half message, or by the operation that decided it."""
    if isinstance(held, Operation):
        return DECIDES[held.decision]
    return "DISCARDED" if held.discarded_at else "PREPARED"


def members(held: HalfMessage | Operation) -> list[Member]:
    """The messages of a transaction, the first MESSAGES of them."""
    got = held.queue_offsets if isinstance(held, Operation) else None
    queue_offsets = got or [None] * len(held.message_ids)
    places = [(held.log_segment, offset) for offset in held.log_offsets[:MESSAGES]]
    found = messages.at(places)
    rows = zip(held.message_ids, places, held.queue_ids, queue_offsets, strict=False)
    return [Member(id, place[1], queue, offset, found.get(place)) for id, place, queue, offset in rows]


def history(held: HalfMessage | Operation, operations: list[Operation]) -> list[Event]:
    """What happened to a transaction, the latest first."""
    checks = CheckAttempt.objects.filter(transaction_id=held.transaction_id).order_by("-asked_at")[:HISTORY]
    events = [Event(held.stored_at, "prepared")]
    events += [Event(check.asked_at, "check", check=check) for check in checks]
    events += [Event(said.decided_at, "operation", operation=said) for said in operations]
    return sorted(events, key=lambda event: event.at, reverse=True)
