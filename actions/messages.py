"""Actions on messages: redrive the dead letters of a group, reset its offsets, recall what is delayed."""

import uuid
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from access import audit
from access.audit import Outcome, Signature
from delivery.dead_letters import letters as dead_letters
from delivery.dead_letters.letters import RedriveDeadLetters
from delivery.receive import offsets
from delivery.receive.offsets import ResetOffsets
from scheduling import recalls
from store.errors import OutcomeUnknown, Refusal, SystemBusy

COUNT_LIMIT = 100_001


def redrive(targets: Sequence[str], parameters: Mapping[str, Any], signature: Signature, call: Any) -> None:
    """Sends dead letters of `group` again, to their origin or to `to_topic`."""
    ids = [uuid.UUID(target) for target in targets]
    wanted = RedriveDeadLetters(message_ids=ids, to_topic=parameters.get("to_topic") or None)
    note = signature.note("dead_letter.redrive", parameters["group"], dead_letters.outcomes)
    refusal = call(_refused(dead_letters.redrive(parameters["group"], wanted, note)))
    _record(targets, refusal, "dead_letter.redrive", signature)


def bounded(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The dead letters of `group` until now: one that fails and dies again is a new one."""
    return {**wanted, "until_offset": dead_letters.end(wanted["group"])}


def count(wanted: Mapping[str, Any]) -> int:
    """How many are not redriven yet, counted up to a limit."""
    return dead_letters.count(wanted["group"], wanted["until_offset"], COUNT_LIMIT)


def following(wanted: Mapping[str, Any], place: Any, most: int) -> tuple[list[str], Any]:
    """The next dead letters, the oldest first."""
    heads = dead_letters.heads(wanted["group"], place or 0, wanted["until_offset"], most)
    ids = list(dict.fromkeys(str(head.message_id) for head in heads))
    return ids, heads[-1].queue_offset + 1 if len(heads) == most else None


def describe(targets: Sequence[str]) -> dict[str, str]:
    """Dead letters have their own page, which says what each is."""
    return dict.fromkeys(targets, "dead letter")


def delayed(targets: Sequence[str]) -> dict[str, str]:
    """Whether a message still waits is found out by its recall."""
    return dict.fromkeys(targets, "delayed message")


def reset(targets: Sequence[str], parameters: Mapping[str, Any], signature: Signature, call: Any) -> None:
    """Moves groups to another offset of a topic."""
    for group in targets:
        note = signature.note("offsets.reset", group, offsets.outcomes)
        refusal = call(_refused(offsets.reset(group, request_of(parameters, dry_run=False), note)))
        _record([group], refusal, "offsets.reset", signature)


async def _refused(work: Awaitable[object]) -> Refusal | None:
    """Why something is refused for good; None: it is done."""
    try:
        await work
    except (SystemBusy, OutcomeUnknown):
        raise
    except Refusal as refusal:
        return refusal
    return None


def _record(targets: Sequence[str], refusal: Refusal | None, action: str, signature: Signature) -> None:
    """Writes the entries of what was refused before its batch, which would have written them."""
    if refusal is not None and signature.action_id is not None:
        for target in set(targets) - audit.recorded(signature.action_id, targets):
            audit.write(signature, action, Outcome(target, refusal))


def recall(targets: Sequence[str], parameters: Mapping[str, Any], signature: Signature, call: Any) -> None:
    """Takes delayed messages back before they become visible."""
    for target in targets:
        note = signature.note("message.recall", target)
        refusal = call(_refused(recalls.recall_message(uuid.UUID(target), note)))
        _record([target], refusal, "message.recall", signature)


def request_of(parameters: Mapping[str, Any], *, dry_run: bool) -> ResetOffsets:
    """The reset that the parameters ask for: `topic`, `to` and, for one queue, `queue_id`."""
    to = str(parameters["to"])
    number = int(to) if to.isascii() and to.isdigit() else to
    return ResetOffsets(topic=parameters["topic"], to=number, queue_id=parameters.get("queue_id"), dry_run=dry_run)
