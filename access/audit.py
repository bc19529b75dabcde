"""The audit: an entry for each change, written in the change's own database transaction.

What the ORM changes is wrapped in `change`. What the group commit writes carries a note (`Signature.note`), which the
batch runs before it commits. Triggers on the tables would see every change, but neither the caller nor the reason.
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
# Columns that no entry shows.
SECRETS = frozenset(("secret", "previous_secret", "digest", "password", "source_url", "body"))
MAX_REASON = 1000
# Longer than any name; a refused one may have any length, and an index of PostgreSQL takes 2,700 bytes.
MAX_TARGET = 200


class Outcome(NamedTuple):
    """What became of one target: a refusal as it is, anything else as what stands there now."""

    target: object
    outcome: object
    before: object = None
    result: str = DONE


@dataclass(frozen=True, slots=True)
class Signature:
    """Who changes something, in which request, why, and in which console action. `kind`: user, key or command."""

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
        """What has the entry of an operation written by its batch; several entries where `outcomes` names them."""

        def write(batch: Batch, operation: Operation[Any]) -> None:
            for outcome in outcomes(operation) if outcomes else (of_one(target, operation),):
                batch.insert(INSERT_ENTRIES, self.row(action, outcome))

        return write


def of_one(target: object, operation: Operation[Any]) -> Outcome:
    """The outcome of an operation on one thing. One that found nothing to change has nothing `before` it."""
    before = operation.before
    return Outcome(target, operation.refusal or operation.result, before, UNCHANGED if before is None else DONE)


class Change:
    """A change while it is made: its maker fills in what stood there before, and what does after."""

    def __init__(self, target: object) -> None:
        self.target = target
        self.before: object = None
        self.after: object = None


@contextlib.contextmanager
def change(signature: Signature, action: str, target: object) -> Iterator[Change]:
    """A block whose changes and their entry are one database transaction. A refusal undoes it and has its own entry."""
    made = Change(target)
    try:
        with copies.change():
            yield made
            write(signature, action, Outcome(made.target, made.after, made.before))
    except Refusal as refusal:
        write(signature, action, Outcome(made.target, refusal))
        raise


def together() -> AbstractContextManager[None]:
    """A block that is one database transaction: a change of Django's own, and the entry that `write` adds."""
    return transaction.atomic()


def write(signature: Signature, action: str, outcome: Outcome) -> None:
    """Writes an entry, within the caller's transaction."""
    row = signature.row(action, outcome)
    decoded = {name: None if row[name] is None else msgspec.json.decode(row[name]) for name in ("before", "after")}
    AuditEntry.objects.create(**{**row, **decoded})


class Wanted(NamedTuple):
    """Which entries; what is empty narrows nothing. `target` is whole, since only that has an index."""

    author: str = ""
    action: str = ""
    target: str = ""
    action_id: uuid.UUID | None = None


def page(wanted: Wanted, below_id: int | None, count: int) -> Sequence[AuditEntry]:
    """The latest `count` entries that match, or the latest below an id.

    By author or action the table is read backwards from there: entries come from people, and are few.
    """
    found = AuditEntry.objects.order_by("-id")
    given = {name: value for name, value in wanted._asdict().items() if value}
    if below_id is not None:
        given["id__lt"] = below_id
    return list(found.filter(**given)[:count])


def recorded(action_id: uuid.UUID, targets: Sequence[str]) -> set[str]:
    """Those of the targets that have an entry by this console action."""
    found = AuditEntry.objects.filter(action_id=action_id, target__in=targets)
    return set(found.values_list("target", flat=True))


def results(action_id: uuid.UUID) -> dict[str, int]:
    """How many entries of a console action have each result."""
    found = AuditEntry.objects.filter(action_id=action_id).order_by()
    return dict(found.values_list("result").annotate(entries=Count("*")))


def picture(row: Model | None) -> dict[str, object] | None:
    """The columns of a row, without its secrets; None for none."""
    if row is None:
        return None
    fields = (field for field in row._meta.concrete_fields if field.attname not in SECRETS)
    return {field.attname: getattr(row, field.attname) for field in fields}


def _as_text(value: object) -> str:
    return written(value) if isinstance(value, datetime) else str(value)


def encoded(value: object) -> str | None:
    """A value as JSON that PostgreSQL takes; None for none."""
    if value is None:
        return None
    return msgspec.json.encode(value, enc_hook=_as_text).decode().replace("\\u0000", "\\ufffd")
