"""The redrive of dead letters: each letter is sent again once, to the group itself or to another topic."""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from access.audit import Outcome
from delivery import groups
from delivery.dead_letters.lists import BEYOND, NEXT_DEAD_LETTERS, DeadLetterHead
from delivery.dead_letters.resending import FIND_DEAD_LETTERS, MAX_REDRIVEN, Letter, Redrive, own, unknown
from store import queues
from store.commit import writer
from store.commit.operation import Note, Operation
from store.db import connections
from store.errors import MessageIllegal, Refusal
from store.naming import topic_names, topics
from store.process import runtime


class RedriveDeadLetters(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The request of a redrive: which dead letters, and their target: the group itself, or another topic."""

    message_ids: list[uuid.UUID] | None = None
    all: bool = False
    to_topic: str | None = None


async def redrive(group_name: str, request: RedriveDeadLetters, note: Note | None = None) -> list[Letter | Refusal]:
    """Sends dead letters again, each once. Returns a Letter or a Refusal for each, in the order given or oldest first.

    A redriven message starts again with 0 retries. Without `to_topic` it goes through the group's own retry queue, so
    no other group of the topic receives it again. Raises GroupNotExist, MessageIllegal, or the refusal of `to_topic`.
    """
    group = await groups.existing(group_name)
    if (request.message_ids is None) == (not request.all):
        raise MessageIllegal('Give either message_ids or "all": true.')
    if request.message_ids is not None and not 1 <= len(request.message_ids) <= MAX_REDRIVEN:
        raise MessageIllegal(f"message_ids has {len(request.message_ids)} ids: give 1 to {MAX_REDRIVEN}.")
    dead_letters = await groups.dead_letter_topic(group.name)
    wanted = Redrive(group, dead_letters, request.message_ids, None)
    if request.to_topic is not None:
        beside = await runtime.placement.beside(lambda: _first_origin(wanted))
        wanted.to_topic = await topics.for_sending(request.to_topic, beside=beside)
    if request.message_ids is not None:
        return await _redrive_named(wanted, request.message_ids, note)
    results: list[Letter | Refusal] = []
    for cell in _cells():
        with runtime.in_cell(cell):
            results += await _redrive_all(wanted, note)
    return results


def _cells() -> list[int]:
    return [cell.cell for cell in runtime.cells()]


async def _first_origin(wanted: Redrive) -> str | None:
    """The topic to which the first of the letters was originally sent. A new `to_topic` is created in the cell of this
    topic.
    """
    for cell in _cells():
        with runtime.in_cell(cell):
            found = own(await _found(wanted, wanted.message_ids, 0, BEYOND, MAX_REDRIVEN))
        if found:
            return (await topic_names.of_ids({found[0].topic_id}))[found[0].topic_id]
    return None


async def _found(
    wanted: Redrive, ids: Sequence[uuid.UUID] | None, from_offset: int, until_offset: int, count: int
) -> Sequence[DeadLetterHead]:
    """Dead letters in this cell: the letters with these ids, or the first `count` letters between two offsets."""
    of_group = {"group_id": wanted.group.id, "topic_id": wanted.dead_letters.id}
    if ids is not None:
        return own(await connections.read(FIND_DEAD_LETTERS, {**of_group, "message_ids": list(ids)}))
    page = {"from_offset": from_offset, "until_offset": until_offset, "max_entries": count}
    return await connections.read(NEXT_DEAD_LETTERS, {**of_group, **page})


async def _redrive_named(wanted: Redrive, ids: list[uuid.UUID], note: Note | None) -> list[Letter | Refusal]:
    """Redrives the letters with these ids in each cell. A letter that no cell has is refused by the last cell."""
    became: dict[uuid.UUID, Letter | Refusal] = {}
    cells = _cells()
    for cell in cells:
        left = [id_ for id_ in ids if id_ not in became]
        with runtime.in_cell(cell):
            is_elsewhere = _is_elsewhere(wanted)
            if cell != cells[-1] or is_elsewhere:
                there = {row.message_id for row in await _found(wanted, left, 0, BEYOND, MAX_REDRIVEN)}
                if is_elsewhere:
                    became |= {id_: _of_another_cell(wanted, id_) for id_ in there}
                left = [id_ for id_ in left if id_ in there and not is_elsewhere]
            if left:
                redrive = Redrive(wanted.group, wanted.dead_letters, left, wanted.to_topic)
                results = (await writer.run(redrive, note)).results
                became |= dict(zip(left, results, strict=True))
    return [became.get(id_) or unknown(wanted, id_) for id_ in ids]


def _is_elsewhere(wanted: Redrive) -> bool:
    """Whether `to_topic` lies in another cell than the dead letters, so that they cannot be sent to it."""
    return wanted.to_topic is not None and wanted.to_topic.cell_id != runtime.here().cell


def _of_another_cell(wanted: Redrive, message_id: uuid.UUID) -> MessageIllegal:
    assert wanted.to_topic is not None
    return MessageIllegal(
        f"Message {message_id} lies in the cell {runtime.here().name}, and the topic {wanted.to_topic.name} "
        f"in the cell {runtime.of(wanted.to_topic.cell_id).name}: the message stays a dead letter. Give a "
        "to_topic of the same cell, or leave to_topic out.",
        message_id=message_id,
    )


async def _redrive_all(wanted: Redrive, note: Note | None) -> list[Letter | Refusal]:
    """Redrives all letters of this cell, in several transactions; letters that die during the redrive are left."""
    [bounds] = await queues.bounds([(wanted.dead_letters.id, 0)])
    results: list[Letter | Refusal] = []
    from_offset = 0
    while from_offset < bounds.max_offset:
        if _is_elsewhere(wanted):
            rows = await _found(wanted, None, from_offset, bounds.max_offset, MAX_REDRIVEN)
            results += [_of_another_cell(wanted, row.message_id) for row in own(rows)]
            from_offset = rows[-1].queue_offset + 1 if rows else bounds.max_offset
            continue
        redriven = await writer.run(wanted.within(from_offset, bounds.max_offset), note)
        results += redriven.results
        from_offset = redriven.next_offset
    return results


def outcomes(redrive: Operation[Any]) -> Iterable[Outcome]:
    """The entries of the audit about a redrive, one for each letter."""
    assert isinstance(redrive, Redrive)
    assert redrive.result is not None
    for result in redrive.result.results:
        if isinstance(result, Refusal):
            yield Outcome(result.extra["message_id"], result)
        else:
            before = {"dead_letter_of": redrive.group.name}
            yield Outcome(result.message_id, {"topic": result.topic}, before)
