"""Actions on messages: redrive a group's dead letters, reset a group's offsets, recall delayed messages."""

import uuid
from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any

from access import audit
from access.audit import Outcome, Signature
from console.actions import configuration, shapes
from console.actions.shapes import COUNT_LIMIT, Call, Counted, Filter, Matching, Parameters, Stepwise
from delivery import registry
from delivery.dead_letters import lists
from delivery.dead_letters import redrive as dead_letters
from delivery.dead_letters.lists import Wanted as Letters
from delivery.dead_letters.redrive import RedriveDeadLetters
from delivery.receive import offsets
from delivery.receive.offsets import ResetOffsets
from scheduling import recalls
from store import registry as topics
from store.cells import cells
from store.db import sync
from store.db.fields import Text, Time, Whole
from store.errors import Refusal
from store.messages.texts import counted
from store.reading import cursors, merging
from store.reading.merging import Page

# The most pages of a filtered list that one step, preview or count reads.
MAX_PAGES = 20
# An action's filter fields for dead letters. The field for the reason of the letters has another name than `reason`,
# which is the operator's reason for the action.
FILTER = (
    Text("group", "Consumer group", needed=True),
    Text("topic", "Topic"),
    Text("tags", "Tags", may_be_empty=True),
    Whole("attempts", "Attempts", least=0, most=999_999_999),
    Time("hour", "Hour"),
    Text("last_reason", "Reason", may_be_empty=True),
)
NARROWING = {"topic": "topic", "tags": "tags", "attempts": "attempts", "hour": "hour", "last_reason": "reason"}


def redrive(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Redrives dead letters of `group`, to their original topic or to `to_topic`."""
    ids = [uuid.UUID(target) for target in targets]
    wanted = RedriveDeadLetters(message_ids=ids, to_topic=parameters.get("to_topic") or None)
    note = signature.note("dead_letter.redrive", parameters["group"], dead_letters.outcomes)
    refusal = call(_refused(dead_letters.redrive(parameters["group"], wanted, note)))
    _record(targets, refusal, "dead_letter.redrive", signature)


def bounded(wanted: Filter) -> dict[str, Any]:
    """Adds a limit to the filter: only dead letters that `group` has now. A letter that dies again is a new letter."""
    return {**wanted, "until_offset": cursors.to_plain(lists.ends(registry.find(wanted["group"])))}


def count(wanted: Filter) -> Counted:
    """The number of matching letters that are not redriven yet, counted up to a limit. Raises CellAway."""
    if narrows(wanted):
        ids, cursor = following(wanted, None, COUNT_LIMIT)
        return Counted(len(ids), cursor is not None)
    with cells.leaving_out() as missing:
        found = lists.count(registry.find(wanted["group"]), _until(wanted), COUNT_LIMIT + 1)
    shapes.require_all(missing)
    return shapes.to_limit(found)


def following(wanted: Filter, cursor: Any, most: int) -> tuple[list[str], Any]:
    """The next dead letters, the oldest first; a filtered search reads at most MAX_PAGES pages. Raises CellAway."""
    each: dict[int, int] | None = merging.from_start(0) if cursor is None else cursors.from_plain(cursor, int)
    group, ids = registry.find(wanted["group"]), dict[str, None]()
    for _ in range(MAX_PAGES if narrows(wanted) else 1):
        if each is None or len(ids) >= most:
            break
        page: Page[Any, int]
        if narrows(wanted):
            page = lists.narrowed(group, of_letters(wanted), each, _until(wanted), most - len(ids))
        else:
            page = lists.heads(group, each, _until(wanted), most)
        shapes.require_all(page.missing)
        ids.update(dict.fromkeys(str(letter.message_id) for letter in page.rows))
        each = page.after
    return list(ids), None if each is None else cursors.to_plain(each)


def _until(wanted: Filter) -> dict[int, int]:
    return cursors.from_plain(wanted["until_offset"], int)


def narrows(wanted: Filter) -> bool:
    """Whether the filter has a condition, so that not all dead letters of the group are wanted."""
    return bool(wanted.keys() & NARROWING.keys())


def of_letters(wanted: Filter) -> Letters:
    """The filter of a list of dead letters."""
    given = {NARROWING[name]: value for name, value in wanted.items() if name in NARROWING}
    if "hour" in given:
        given["hour"] = datetime.fromisoformat(given["hour"])
    return Letters(**given)


def describe(targets: Sequence[str], parameters: Parameters) -> dict[str, str]:
    """A text for each dead letter with topic, keys, attempts and last reason. A dropped letter is missing."""
    found = lists.described(registry.find(parameters["group"]), [uuid.UUID(target) for target in targets])
    return {
        str(message_id): "; ".join(
            (
                letter.topic or "a deleted topic",
                *(letter.keys or ()),
                counted(letter.reconsume_times + 1, "attempt"),
                letter.reason or "no reason kept",
            )
        )
        for message_id, letter in found.items()
    }


def delayed(targets: Sequence[str], parameters: Parameters) -> dict[str, str]:
    """A text for each message with its due time. A message that does not wait is missing."""
    due = recalls.waiting([uuid.UUID(target) for target in targets])
    return {str(message_id): f"waits until {at:%Y-%m-%d %H:%M:%S} UTC" for message_id, at in due.items()}


def reset(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Moves groups to another offset of a topic."""
    for group in targets:
        note = signature.note("offsets.reset", group, offsets.outcomes)
        refusal = call(_refused(offsets.reset(group, request_of(parameters, dry_run=False), note)))
        _record([group], refusal, "offsets.reset", signature)


async def _refused(work: Awaitable[object]) -> Refusal | None:
    """Runs the work. Returns None when it is done, or a final refusal. Raises a temporary refusal."""
    try:
        await work
    except Refusal as refusal:
        if refusal.is_for_now:
            raise
        return refusal
    return None


def _record(targets: Sequence[str], refusal: Refusal | None, action: str, signature: Signature) -> None:
    """Writes the audit entries of targets that were refused before the write of the batch with the other targets."""
    if refusal is not None and signature.action_id is not None:
        for target in set(targets) - audit.recorded(signature.action_id, targets):
            audit.write(signature, action, Outcome(target, refusal))


def recall(targets: Sequence[str], parameters: Parameters, signature: Signature, call: Call) -> None:
    """Recalls delayed messages before they become visible."""
    for target in targets:
        note = signature.note("message.recall", target)
        refusal = call(_refused(recalls.recall_message(uuid.UUID(target), note)))
        _record([target], refusal, "message.recall", signature)


def request_of(parameters: Parameters, *, dry_run: bool) -> ResetOffsets:
    """The reset that the parameters describe: `topic`, `to` and, for a single queue, `queue_id`."""
    to = str(parameters["to"])
    number = int(to) if to.isascii() and to.isdigit() else to
    return ResetOffsets(topic=parameters["topic"], to=number, queue_id=parameters.get("queue_id"), dry_run=dry_run)


def dry_run(group: str, parameters: Parameters) -> object:
    """The moves that a reset would make."""
    return sync.call(offsets.reset, group, request_of(parameters, dry_run=True))


KINDS = (
    Stepwise(
        "dead_letter.redrive",
        "Redrive dead letters",
        "Redrive",
        redrive,
        describe,
        noun="dead letter",
        fields=(
            Text("group", "Consumer group", needed=True),
            Text("to_topic", "To another topic", unset="again to the group"),
        ),
        matching=Matching(FILTER, bounded, count, following),
        by_id=True,
    ),
    Stepwise(
        "offsets.reset",
        "Reset offsets",
        "Reset offsets",
        reset,
        configuration.CONSUMERS.describe,
        noun=configuration.CONSUMERS.noun,
        fields=(
            Text("topic", "Topic", needed=True),
            Text("to", "To", needed=True, help="earliest, latest, an offset or a time"),
            Whole("queue_id", "Queue", unset="all", least=0, most=topics.MAX_QUEUES - 1),
        ),
        grave=True,
        dry_run=dry_run,
    ),
    Stepwise(
        "message.recall",
        "Recall delayed messages",
        "Recall",
        recall,
        delayed,
        noun="message",
        grave=True,
        by_id=True,
    ),
)
