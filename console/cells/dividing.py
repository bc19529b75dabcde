"""The two databases of a move after the promotion: makes each a cell that knows which topics have left it."""

import contextlib
from collections.abc import Sequence

from console.cells import plans, purging
from console.cells.models import Move
from store import registry as topic_registry
from store.cells.sides import BECOME_CELL, NOTE_FIRST_NUMBERS, PLACE_TOPICS, SKIP_NUMBERS, Side
from store.db import fences
from store.errors import CellAway

# The new database skips this many numbers, so that they do not collide with numbers that the source assigns after the
# fence.
SKIPPED_NUMBERS = 1_000_000
# The database of a moved cell gets this `cell_id`: it is no longer a cell.
NO_CELL = -1


def become(move: Move, target: Side) -> None:
    """Makes the promoted database the new cell, and notes in it which topics stay in the source. May be repeated."""
    with target.transaction():
        facts = target.look()
        if facts.is_fenced:
            target.ask(BECOME_CELL, cell_id=move.target_id)
            if not move.is_whole:
                gone = _staying(move, facts.departed)
                target.depart(gone, plans.queues_of(target, gone))
                target.one(SKIP_NUMBERS, by=SKIPPED_NUMBERS)
                target.ask(NOTE_FIRST_NUMBERS)
                purging.of_fence(target, [*gone, *purging.of_broker()])
                target.ask(PLACE_TOPICS, cell_id=move.target_id, topics=move.topic_ids)
        target.change(fences.reopen(facts.database))


def _staying(move: Move, departed: Sequence[int]) -> list[int]:
    """The topics that do not move. The new cell's database has their rows because it was a standby of the source.

    These are the source's topics that stay, and topics that left the source in an earlier move.
    """
    there = topic_registry.of_users().filter(cell_id=move.source_id).values_list("id", flat=True)
    return sorted({*there, *departed} - {*move.topic_ids})


def open_source(move: Move, source: Side) -> None:
    """Ends the fence of the source after topics have left it, and ends sessions that began during the fence, because
    they stay read-only. May be repeated.
    """
    with source.transaction():
        lifted = source.ask(fences.LIFT_FENCE, by_its_run=True)
        if lifted:
            purging.of_fence(source, move.topic_ids)
            source.ask(PLACE_TOPICS, cell_id=move.target_id, topics=move.topic_ids)
        source.change(fences.reopen(source.look().database))
    source.oust_readers()


def leave(source: Side) -> None:
    """Turns the earlier database of a moved cell into a database that is no cell. If it is away, it stays read-only."""
    with contextlib.suppress(CellAway):
        source.ask(BECOME_CELL, cell_id=NO_CELL)
        source.oust()


def take_back(move: Move, source: Side) -> None:
    """Ends the fence of the source, which keeps its topics. May be repeated."""
    with source.transaction():
        facts = source.look()
        source.ask(fences.LIFT_FENCE, by_its_run=True)
        if not move.is_whole and {*facts.departed} & {*move.topic_ids}:
            gone = sorted({*facts.departed} - {*move.topic_ids})
            source.depart(gone, plans.queues_of(source, gone))
        source.change(fences.reopen(facts.database))
    source.oust_readers()
