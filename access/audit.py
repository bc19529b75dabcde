"""The audit: an entry for each change, written in the change's own database transaction.

Changes by the ORM are wrapped in `change`. An operation of the group commit carries a note (`Signature.note`), which
the batch runs before the commit. Triggers on the tables would know each change, but neither its author nor its reason.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.db.models import Count, Model

from access.models import AuditEntry
from store.cells import copies
from store.commit.batch import Batch
from store.commit.operation import Note, Operation
from store.db.statements import Statement
from store.errors import Refusal
from store.messages.texts import legible
from store.messages.times import written

INSERT_ENTRIES = Statement(__file__, "insert_entries")

DONE, UNCHANGED = "done", "unchanged"
# Columns that an audit entry never shows.
SECRETS = frozenset(("secret", "previous_secret", "digest", "password", "source_url", "body"))
MAX_REASON = 1000
# The most characters of a target, more than a valid name has: a refused name may have any length, and PostgreSQL's
# index rows have at most 2,700 bytes.
MAX_TARGET = 200


class Outcome(NamedTuple):
    """The outcome for one target: the refusal, or the new state of the target."""

    target: object
    outcome: object
    before: object = None
    result: str = DONE


@dataclass(frozen=True, slots=True)
class Signature:
    """The author of a change, the request, the reason and the console action. `kind`: user, key or command."""

    kind: str
    author: str
    request_id: str | None = None
    reason: str | None = None
    action_id: uuid.UUID | None = None

    def row(self, action: str, outcome: Outcome) -> dict[str, Any]:
        """The columns of an entry; `before` and `after` as JSON."""
        refusal = outcome.outcome if isinstance(outcome.outcome, Refusal) else None
        return {
            "author_kind": self.kind,
            "author": self.author,
            "action": action,
            "target": legible(str(outcome.target))[:MAX_TARGET],
            "reason": None if self.reason is None else legible(self.reason)[:MAX_REASON],
            "before": None if refusal else encoded(outcome.before),
            "after": None if refusal else encoded(outcome.outcome),
            "result": refusal.code if refusal else outcome.result,
            "detail": legible(refusal.detail) if refusal else None,
            "request_id": self.request_id,
            "action_id": self.action_id,
        }

    def note(
        self, action: str, target: object, outcomes: Callable[[Operation[Any]], Iterable[Outcome]] | None = None
    ) -> Note:
        """A note that writes the operation's entry in its batch; several entries where `outcomes` returns several."""

        def write(batch: Batch, operation: Operation[Any]) -> None:
            for outcome in outcomes(operation) if outcomes else (of_one(target, operation),):
                batch.insert(INSERT_ENTRIES, self.row(action, outcome))

        return write


def of_one(target: object, operation: Operation[Any]) -> Outcome:
    """The outcome of an operation on one target. Without `before`, the operation changed nothing."""
    before = operation.before
    return Outcome(target, operation.refusal or operation.result, before, UNCHANGED if before is None else DONE)


class Change:
    """A change while it is made: the caller sets the target's state before and after the change."""

    def __init__(self, target: object) -> None:
        self.target = target
        self.before: object = None
        self.after: object = None


@contextlib.contextmanager
def change(signature: Signature, action: str, target: object) -> Iterator[Change]:
    """A block whose changes and audit entry are one database transaction.

    A refusal undoes both, and is recorded in a separate entry.
    """
    made = Change(target)
    try:
        with copies.change():
            yield made
            write(signature, action, Outcome(made.target, made.after, made.before))
    except Refusal as refusal:
        write(signature, action, Outcome(made.target, refusal))
        raise


def together() -> AbstractContextManager[None]:
    """A database transaction for a change by Django's ORM together with the audit entry that `write` adds."""
    return transaction.atomic()


def write(signature: Signature, action: str, outcome: Outcome) -> None:
    """Writes an entry, within the caller's transaction."""
    row = signature.row(action, outcome)
    decoded = {name: None if row[name] is None else msgspec.json.decode(row[name]) for name in ("before", "after")}
    AuditEntry.objects.create(**{**row, **decoded})


class Wanted(NamedTuple):
    """The filter of a list of entries; an empty field is no condition. `target` is a whole name, which has an index."""

    author: str = ""
    action: str = ""
    target: str = ""
    action_id: uuid.UUID | None = None


def page(wanted: Wanted, below_id: int | None, count: int) -> Sequence[AuditEntry]:
    """The latest `count` entries that match; with `below_id`, only entries with a lower id.

    With an author or an action, the table is read backwards without an index, because people make few entries.
    """
    found = AuditEntry.objects.order_by("-id")
    given = {name: value for name, value in wanted._asdict().items() if value}
    if below_id is not None:
        given["id__lt"] = below_id
    return list(found.filter(**given)[:count])


def recorded(action_id: uuid.UUID, targets: Sequence[str]) -> set[str]:
    """The targets among `targets` for which this console action already has an audit entry."""
    found = AuditEntry.objects.filter(action_id=action_id, target__in=targets)
    return set(found.values_list("target", flat=True))


def results(action_id: uuid.UUID) -> dict[str, int]:
    """The number of audit entries of a console action, by result."""
    found = AuditEntry.objects.filter(action_id=action_id).order_by()
    return dict(found.values_list("result").annotate(entries=Count("*")))


def picture(row: Model | None) -> dict[str, object] | None:
    """The columns of a row, without secrets; None for no row."""
    if row is None:
        return None
    fields = (field for field in row._meta.concrete_fields if field.attname not in SECRETS)
    return {field.attname: getattr(row, field.attname) for field in fields}


def _as_text(value: object) -> str:
    return written(value) if isinstance(value, datetime) else str(value)


def encoded(value: object) -> str | None:
    """A value as JSON that PostgreSQL accepts; None for None."""
    if value is None:
        return None
    return msgspec.json.encode(value, enc_hook=_as_text).decode().replace("\\u0000", "\\ufffd")
