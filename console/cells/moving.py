"""A move of topics to a new cell, by promoting a standby: the steps, in their order.

Up to the fence the standby replays the source's WAL, so no data is copied and no data can differ. A failure before the
map names the new database undoes the move, and the source continues; after a later failure `resume` finishes the move.
The row of the move has the last finished step. Each step may be done twice.
"""

import time
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Self

from django.db import transaction
from django.utils import timezone

from access.audit import Signature
from console.cells import dividing, moves, plans, purging, registry, steps
from console.cells.errors import CellIllegal
from console.cells.models import Move
from store.cells import copies
from store.cells.sides import LOOK_SECONDS, OUST_SECONDS, PROMOTE, READ_POSITION, READ_REPLAY, Side
from store.db import fences
from store.errors import CellAway, Refusal
from store.models import Cell, Topic
from store.process.runtime import CONTROL

# After this time any process may end the fence, unless the promotion has begun.
FENCE_SECONDS = 15.0
REPLAY_SECONDS = 10.0
PROMOTE_SECONDS = 20.0
BY_HAND_SECONDS = 600.0

Say = Callable[[str], None]


class Run:
    """A run continues a move after the last finished step. As a context manager, it closes its sessions at the end."""

    def __init__(self, move: Move, signature: Signature, say: Say) -> None:
        self.move = move
        self._signature = signature
        self._say = say
        self._sides: list[Side] = []

    def __enter__(self) -> Self:
        purging.write_behind_the_fence()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for side in self._sides:
            side.__exit__()

    @cached_property
    def source(self) -> Side:
        """The session at the cell that the topics leave."""
        return self._side(self.move.source_name, registry.url_of(Cell.objects.get(id=self.move.source_id)))

    @cached_property
    def target(self) -> Side:
        """The session at the standby, which becomes the new cell."""
        return self._side(self.move.target_name, self.move.target_url)

    def _side(self, name: str, url: str) -> Side:
        moves.require_holder(self.move)
        side = Side(name, url)
        self._sides.append(side)
        side.take_over([purging.own_session(), *(one.pid for one in self._sides)])
        # If this process was frozen, another process may have taken over the move: then this process has just ended the
        # sessions of the other process, and must do nothing more.
        moves.require_holder(self.move)
        return side

    def finish(self) -> None:
        """Does the remaining steps. Raises the refusal of a step that is not possible now.

        A refusal before the promotion also undoes the move.
        """
        try:
            self._divide_up()
        except Refusal as refusal:
            moves.note_error(self.move, refusal.detail)
            if self.move.step in (steps.PREPARED, steps.FENCED, steps.REPLAYED):
                self.take_back(refusal.detail)
            raise
        try:
            self._open()
            self._clear()
        except Refusal as refusal:
            moves.note_error(self.move, refusal.detail)
            raise

    def _divide_up(self) -> None:
        """Performs the steps up to and including the change of the map. From then on the map names the new database."""
        if self.move.step == steps.UNDOING:
            # The source may have taken writes that the standby does not have.
            raise CellIllegal(f"The move {self.move} is being undone: run `cells undo` to finish the undo.")
        if self.move.step in (steps.PREPARED, steps.FENCED, steps.REPLAYED):
            self._fence()
            self._replay()
        if self.move.step == steps.PROMOTING:
            self._promote()
        if self.move.step == steps.PROMOTED:
            dividing.become(self.move, self.target)
            self._divide()

    def _note(self, step: str, **fields: object) -> None:
        moves.note(self.move, step, self._signature, **fields)
        self._say(f"{step}.")

    def _fence(self) -> None:
        """Fences the source: ends the sessions that may write, and makes new sessions read-only."""
        database = self.source.look().database
        fenced_at = timezone.now()
        with self.source.transaction():
            self._epoch = self.source.one(fences.FENCE_CELL, seconds=FENCE_SECONDS).epoch
            self.source.change(fences.close(database))
        left = self.source.oust()
        until = time.monotonic() + OUST_SECONDS
        while left:
            if time.monotonic() > until:
                raise CellAway(
                    f"Database sessions of the cell {self.move.source_name} were asked to end and have not ended: "
                    f"{left}."
                )
            time.sleep(LOOK_SECONDS)
            left = self.source.oust(pids=left)
        self._note(steps.FENCED, fenced_at=fenced_at)

    def _replay(self) -> None:
        """Waits until the standby has all acknowledged writes. From then on only this command ends the fence."""
        if not self.move.is_whole:
            plans.require_untorn(self.source, self.move.topic_ids)
        position = self.source.one(READ_POSITION)
        self._wait(
            lambda: (self.target.one(READ_REPLAY, position=position).lag_bytes or 0) <= 0, REPLAY_SECONDS, "replay"
        )
        self._note(steps.REPLAYED, position=position)
        with self.source.transaction():
            if not self.source.ask(fences.HOLD_FENCE, epoch=self._epoch):
                raise CellIllegal(
                    f"The fence of the cell {self.move.source_name} was removed while the move was running."
                )
            if not self.move.is_whole:
                gone = sorted({*self.source.look().departed, *self.move.topic_ids})
                self.source.depart(gone, plans.queues_of(self.source, gone))
        self._note(steps.PROMOTING)

    def _promote(self) -> None:
        if self.target.look().is_standby:
            if self.move.by_hand:
                self._say(f"Promote the standby of {self.move.source_name} now: it has replayed {self.move.position}.")
            else:
                self.target.one(PROMOTE)
            seconds = BY_HAND_SECONDS if self.move.by_hand else PROMOTE_SECONDS
            self._wait(lambda: not self.target.look().is_standby, seconds, "promotion")
        self._note(steps.PROMOTED)

    def _wait(self, is_done: Callable[[], bool], seconds: float, named: str) -> None:
        until = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > until:
                raise CellAway(
                    f"The {named} of the standby for {self.move.target_name} is not finished after {seconds:g} s."
                )
            time.sleep(LOOK_SECONDS)

    def _divide(self) -> None:
        """Changes the map, in one transaction, to name the new database."""
        move = self.move
        with transaction.atomic():
            copies.hold()
            if move.is_whole:
                Cell.objects.filter(id=move.source_id).update(url=move.target_url)
            else:
                made = {"name": move.target_name, "url": move.target_url, "parent_id": move.source_id}
                Cell.objects.create(id=move.target_id, **made)
                Topic.objects.filter(id__in=move.topic_ids).update(cell_id=move.target_id)
            moves.note(move, steps.DIVIDED, self._signature)
            registry.announce()
        self._say(f"{steps.DIVIDED}.")

    def _open(self) -> None:
        """Allows the source to write again, for the topics that have stayed in it."""
        if self.move.step != steps.DIVIDED:
            return
        if not self.move.is_whole:
            dividing.open_source(self.move, self.source)
        elif "source" in vars(self):
            dividing.leave(self.source)
        self._note(steps.OPENED, opened_at=timezone.now())

    def _clear(self) -> None:
        """Leaves the other side's timers and dead letters out of each side, and repairs copies of the configuration."""
        move = self.move
        if not move.is_whole:
            for side in (self.source, self.target):
                deleted = purging.of_timers(side)
                self._say(f"{side.name}: {deleted} timers of the other side deleted.")
                self._say(f"{side.name}: {purging.of_letters(side)} dead letters are left to the other side.")
            if move.source_id == CONTROL:
                purging.of_configuration(self.target)
        for cell in registry.every():
            try:
                registry.repair(cell)
            except CellAway as away:
                self._say(away.detail)
        moves.end(move, steps.DONE, self._signature)

    def take_back(self, error: str = "") -> None:
        """Undoes the move: ends the fence; the source keeps its topics. Raises CellIllegal after the map's change."""
        move = self.move
        if move.step not in steps.BEFORE_THE_MAP:
            raise CellIllegal(
                f"The topics of the move {move} already lie in the new cell: run `cells resume` to finish the move."
            )
        self._note(steps.UNDOING)
        dividing.take_back(move, self.source)
        moves.end(move, steps.UNDONE, self._signature, error)


def taken_over(signature: Signature, say: Say) -> Run:
    """A run that continues the unfinished move. The earlier run can then change nothing any more."""
    # The control itself may be fenced, so this process must be able to write behind the fence.
    purging.write_behind_the_fence()
    run = Run(moves.taken_over(), signature, say)
    with Side("the control", "") as control:
        control.take_over([purging.own_session()])
    return run
