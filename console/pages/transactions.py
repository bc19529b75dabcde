"""The page of one transaction: its state, its messages and its history."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from access import audit, roles
from access.audit import Wanted
from access.models import AuditEntry
from console.pages import bodies, frame
from store.reading import previews
from store.rows import Preview
from store.stats import now
from transactions import schedule
from transactions.reads import health, history
from transactions.reads.health import Checking
from transactions.reads.history import TransactionRows
from transactions.rows import CheckAttemptRow, OperationRow, TransactionRow

MESSAGES = 20
# The most entries of the audit that are read about a transaction.
ENTRIES = 50
# The names of operators' decisions in the audit.
ACTIONS = {"COMMIT": "transaction.commit", "ROLLBACK": "transaction.rollback", "RESUME": "discarded.resume"}


@dataclass(frozen=True)
class Message:
    """A message of a transaction, its log offset, and the queue offset at which a commit made it visible.

    `stored` is None when retention has dropped the message's segment.
    """

    message_id: UUID
    log_offset: int
    queue_id: int
    queue_offset: int | None
    stored: Preview | None

    @property
    def properties(self) -> dict[str, str]:
        """The message's properties that the producer has set."""
        return dict(json.loads(self.stored.properties)) if self.stored and self.stored.properties else {}

    @property
    def body(self) -> bodies.Preview | None:
        """The beginning of the body as text, or as bytes."""
        found = self.stored
        return bodies.preview(found.beginning, found.size, found.body_form) if found else None


@dataclass(frozen=True)
class Event:
    """An event of a transaction: it was prepared, checked, ended, discarded or resumed."""

    at: datetime
    kind: str
    check: CheckAttemptRow | None = None
    operation: OperationRow | None = None
    author: str | None = None


@require_GET
def one(request: HttpRequest, transaction_id: UUID) -> HttpResponse:
    """The page of one transaction: its state, its messages and its history."""
    kept = history.kept(transaction_id)
    if kept is None:
        hours = f"ended transactions are kept for {settings.RESERVED_HOURS} hours"
        return frame.not_there(request, f"Transaction {transaction_id} does not exist: {hours}.", "pending")
    return frame.show(
        request,
        "console/transaction.html",
        "Transaction",
        now=now(),
        kept=kept,
        transaction=kept.transaction,
        parts=messages(kept.transaction),
        more_parts=max(0, len(kept.transaction.message_ids) - MESSAGES),
        history=events(kept, audit.page(Wanted(target=str(transaction_id)), None, ENTRIES)),
        check_max=schedule.most_checks(),
        checking=checking(kept),
        bodies=roles.may_read_bodies(request.user),
    )


def checking(kept: TransactionRows) -> Checking | None:
    """Whether and how the transaction is checked; None when its producer group was deleted."""
    group = kept.producer_group
    return None if group is None else health.checking([group.name]).get(group.name)


def messages(transaction: TransactionRow) -> list[Message]:
    """The first MESSAGES messages of a transaction."""
    positions = [(transaction.log_segment, offset) for offset in transaction.log_offsets[:MESSAGES]]
    found = previews.at(dict(zip(transaction.message_ids, positions, strict=False)), bodies.PREVIEW_BYTES)
    none: list[int | None] = [None] * len(positions)
    queue_offsets: Sequence[int | None] = transaction.queue_offsets or none
    rows = zip(transaction.message_ids, positions, transaction.queue_ids, queue_offsets, strict=False)
    return [
        Message(message_id, position[1], queue_id, queue_offset, found.get(message_id))
        for message_id, position, queue_id, queue_offset in rows
    ]


def events(kept: TransactionRows, entries: Sequence[AuditEntry]) -> list[Event]:
    """The events of a transaction, the latest first. For an operator's decision, its author comes from the audit."""
    found = [Event(kept.transaction.stored_at, "prepared")]
    found += [Event(check.asked_at, "check", check=check) for check in kept.checks]
    found += [
        Event(said.decided_at, "operation", operation=said, author=author_of(said, entries)) for said in kept.operations
    ]
    return sorted(found, key=lambda event: event.at, reverse=True)


def author_of(said: OperationRow, entries: Sequence[AuditEntry]) -> str | None:
    """The operator who decided: the author of the audit entry that was written with this operation."""
    if said.decided_by != "operator":
        return None
    action = ACTIONS.get(said.decision)
    written = [entry for entry in entries if (entry.action, entry.result) == (action, audit.DONE)]
    nearest = min(written, key=lambda entry: abs(entry.at - said.decided_at), default=None)
    return None if nearest is None else f"{nearest.author_kind} {nearest.author}"
