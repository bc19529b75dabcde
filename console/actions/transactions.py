"""Actions on transactions: decide, check and resume, each by the function that the API calls."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

from access.audit import Signature
from console.actions import shapes
from console.actions.shapes import COUNT_LIMIT, Call, Counted, Filter, Matching, Parameters, Run, Stepwise
from store.cells import cells
from store.db.fields import Choice, Text, Whole
from store.errors import Refusal
from store.reading import cursors, merging
from store.stats import now
from transactions import discards
from transactions.checks import requested
from transactions.reads import listing, undecided
from transactions.reads.listing import Cursor, Wanted

# The most changes under way at once. They share batches of the group commit, and leave room for producers' operations.
AT_ONCE = 200
FILTER = (
    Choice("state", "State", component="TransactionState", choices=("PREPARED", "DISCARDED")),
    Text("producer_group", "Producer group"),
    Text("topic", "Topic"),
    Text("namespace", "Namespace"),
    Whole("older_than_seconds", "Older than", least=0, most=999_999_999),
)


def commit(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Commits pending or discarded transactions."""
    call(each(targets, lambda found: _decide(found, "COMMIT", "transaction.commit", signature)))


def roll_back(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Rolls pending or discarded transactions back."""
    call(each(targets, lambda found: _decide(found, "ROLLBACK", "transaction.rollback", signature)))


def resume(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Resumes discarded transactions: they are checked again."""
    call(
        each(targets, lambda found: discards.resume(found, signature.reason, signature.note("discarded.resume", found)))
    )


def check(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Makes pending transactions due for a check at the next tick."""
    call(each(targets, lambda found: requested.make_due(found, signature.note("transaction.check", found))))


def _decide(transaction_id: uuid.UUID, state: str, action: str, signature: Signature) -> Coroutine[Any, Any, Any]:
    note = signature.note(action, transaction_id)
    return discards.resolve_any(transaction_id, state, signature.reason or "", note)


async def each(targets: Sequence[str], change: Callable[[uuid.UUID], Awaitable[Any]]) -> None:
    """Changes each target. A final refusal is recorded as the target's result, in an audit entry.

    If a target has a temporary refusal, raises it at the end; this target has no entry.
    """
    for begin in range(0, len(targets), AT_ONCE):
        under_way = (change(uuid.UUID(target)) for target in targets[begin : begin + AT_ONCE])
        for outcome in await asyncio.gather(*under_way, return_exceptions=True):
            if isinstance(outcome, BaseException) and (not isinstance(outcome, Refusal) or outcome.is_for_now):
                raise outcome


def bounded(wanted: Filter) -> dict[str, Any]:
    """The filter, limited to undecided transactions that were begun before now."""
    return {"state": "PREPARED", **wanted, "begun_before": now().isoformat()}


def count(wanted: Filter) -> Counted:
    """The number of matching transactions, counted up to a limit. Raises CellAway."""
    with cells.leaving_out() as missing:
        found = undecided.count(_wanted(wanted), COUNT_LIMIT + 1)
    shapes.require_all(missing)
    return shapes.to_limit(found)


def following(wanted: Filter, cursor: Any, most: int) -> tuple[list[str], Any]:
    """The next matching transactions, the latest begun first: a change of a transaction does not change its position in
    this order.

    Raises CellAway.
    """
    first = Cursor(datetime.fromisoformat(wanted["begun_before"]).astimezone(UTC))
    after = merging.from_start(first) if cursor is None else cursors.from_plain(cursor, Cursor)
    page = listing.page(_wanted(wanted), after, most)
    shapes.require_all(page.missing)
    return [str(one.transaction_id) for one in page.rows], page.after and cursors.to_plain(page.after)


def _wanted(wanted: Filter) -> Wanted:
    return Wanted(
        wanted["state"],
        wanted.get("producer_group") or None,
        wanted.get("topic") or None,
        wanted.get("older_than_seconds") or 0,
        wanted.get("namespace") or None,
    )


def describe(targets: Sequence[str], parameters: Parameters) -> dict[str, str]:
    """A text for each transaction with state, group, topics and keys. A dropped transaction is missing."""
    found = listing.of_ids([uuid.UUID(target) for target in targets])
    keys = listing.keys_of(found)
    return {
        str(one.transaction_id): ", ".join(
            (
                one.state,
                one.producer_group,
                *dict.fromkeys(part.topic for part in one.messages),
                *keys.get(one.transaction_id, ()),
            )
        )
        for one in found.rows
    }


UNDECIDED = Matching(FILTER, bounded, count, following)


def kind(name: str, title: str, button: str, run: Run, *, grave: bool = False, wants: Filter | None = None) -> Stepwise:
    """A kind of action whose targets are undecided transactions."""
    return Stepwise(
        name,
        title,
        button,
        run,
        describe,
        noun="transaction",
        matching=UNDECIDED,
        grave=grave,
        wants=wants,
        by_id=True,
    )


KINDS = (
    kind("transaction.commit", "Commit transactions", "Commit", commit),
    kind("transaction.rollback", "Roll transactions back", "Roll back", roll_back, grave=True),
    kind("transaction.check", "Check transactions now", "Check now", check, wants={"state": "PREPARED"}),
    kind("discarded.resume", "Resume discarded transactions", "Resume", resume, wants={"state": "DISCARDED"}),
)
