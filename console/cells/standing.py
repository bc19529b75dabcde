"""The state of the unfinished move, described in the same words in the list, page, doctor, readiness, alerts and
refusals.
"""

import asyncio
import contextlib
import os
from datetime import datetime
from typing import NamedTuple

import psycopg
from django.conf import settings

from console.cells import steps
from store.db import connections, fences, sync
from store.db.connections import Connection
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process.runtime import CONTROL, Runtime

# The command as an operator types it. With private servers it is ./mq, which finds their secrets.
COMMAND = f"{os.environ.get('MQ_COMMAND', './mq')} cells" if settings.DATA_DIR else "manage.py cells"
# A move that lasts longer is urgent: a living run needs less, unless it waits for a promotion by hand.
LONG_SECONDS = 30.0
# Time-out of the read at the control, because a refusal must be written even while the control is away.
CONTROL_SECONDS = 1.0


class Standing(NamedTuple):
    """An unfinished move. `has_run`: a run works at it. `error`: the reason, if noted, why the latest run stopped."""

    id: int
    source_id: int
    source_name: str
    target_id: int
    target_name: str
    by_hand: bool
    step: str
    error: str
    started_at: datetime
    seconds: float
    has_run: bool

    @property
    def named(self) -> str:
        """The name of the move: the source's name, `into`, the target's name."""
        return f"{self.source_name} into {self.target_name}"

    @property
    def waits_for_promotion(self) -> bool:
        """Whether a provider has to promote the standby."""
        return self.by_hand and self.has_run and self.step == steps.PROMOTING

    @property
    def reason(self) -> str:
        """The reason why the move has not gone on to the next step."""
        if self.waits_for_promotion:
            return "it waits until the standby is promoted by hand"
        if self.has_run:
            return "its run works at it"
        return self.error.rstrip(".") or "its run has ended before the move was done"

    @property
    def mend(self) -> str:
        """The commands that finish or undo the move, in words."""
        takes_back = f"`{COMMAND} undo` takes it back"
        if self.step == steps.UNDOING:
            return takes_back
        finishes = f"`{COMMAND} resume` finishes it"
        if self.waits_for_promotion:
            finishes = "promote the standby"
        return f"{finishes}, {takes_back}" if self.step in steps.BEFORE_THE_MAP else finishes

    @property
    def is_urgent(self) -> bool:
        """Whether an operator has to act for the move to continue."""
        return not self.has_run or self.waits_for_promotion or self.seconds > LONG_SECONDS

    @property
    def fences(self) -> bool:
        """Whether the source may be fenced; a fenced source takes no writes, not even for topics that stay.

        A whole cell takes writes at its new server as soon as the map has changed.
        """
        is_whole = self.source_id == self.target_id
        return self.step in (steps.BEFORE_THE_MAP if is_whole else steps.BEHIND_A_FENCE)

    @property
    def sentence(self) -> str:
        """The state of the move as text: its name, its step, the reason, and the command that ends it."""
        return f"the move {self.named} is at the step {self.step}, because {self.reason}; {self.mend}"


READ_MOVE = Statement(__file__, "read_move", Standing)
ASKED = {"mover": fences.MOVER}


def read() -> Standing | None:
    """The unfinished move, if there is one."""
    return next(iter(sync.read_of("default", READ_MOVE, ASKED)), None)


async def explain(session: Connection, cell: Runtime) -> str:
    """The sentence with which a fenced cell refuses. `session` is a session at the cell.

    Empty when no move is known.
    """
    with contextlib.suppress(SystemBusy, TimeoutError, psycopg.OperationalError):
        async with asyncio.timeout(CONTROL_SECONDS):
            # At the control the read uses `session` itself: the pool may be opening just this session, and would wait
            # for itself.
            if cell.cell == CONTROL:
                found = await connections.execute(session, READ_MOVE, ASKED)
            else:
                found = await connections.read_control(READ_MOVE, ASKED)
        for move in found:
            if move.source_id == cell.cell:
                return f"The cell {cell.name} takes no writes: {move.sentence}. Nothing was stored."
    return ""
