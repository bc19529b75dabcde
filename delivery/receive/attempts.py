"""Attempts: a receive that its consumer repeats under the same id is handed the same deliveries again.

The answer to a receive may be lost, and its deliveries are hidden then until their invisible time is over. RocketMQ's
clients name each receive by an attempt id, and repeat it under the same one: what is not settled by then is theirs.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from delivery.receipts import settling
from delivery.receive import receives
from delivery.receive.deliveries import HandedOut, Handout, Receiver
from delivery.receive.receives import Received
from store.process import runtime
from store.process.answer_budget import Hold

# Of one process; the oldest go first. 32 deliveries of each take 10 MB together.
MAX_ATTEMPTS = 2000


class Attempt(NamedTuple):
    """What a receive was handed, without the messages, until its invisible time is over by time.monotonic()."""

    receiver: Receiver
    entries: Sequence[HandedOut]
    until: float


class Attempts:
    """The receives of this process by their consumer group and their ids. Another process knows none of them: there a
    repeated one is handed what comes next, and the first deliveries come again when their time is over."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], Attempt] = OrderedDict()

    def keep(self, attempt_id: str, received: Received) -> None:
        """Keeps what was handed out under an id."""
        handout = received.handout
        if handout is None or not handout.entries:
            return
        # Neither the messages nor what holds their bytes.
        receiver = replace(handout.receiver, hold=Hold(handout.receiver.hold.key), gone=None)
        until = time.monotonic() + receiver.invisible_seconds
        self._kept[received.group, attempt_id] = Attempt(receiver, list(handout.entries), until)
        while len(self._kept) > MAX_ATTEMPTS:
            self._kept.popitem(last=False)

    def forget(self, group: str, attempt_id: str) -> None:
        """Drops what was given back."""
        self._kept.pop((group, attempt_id), None)

    async def again(
        self, group: str, attempt_id: str, hold: Hold, gone: asyncio.Future[object] | None
    ) -> Received | None:
        """What was handed out under an id and is not settled, hidden from now on for as long as the first time.

        None where nothing is left of it: the receive begins anew. Raises what `receives.entries` raises.
        """
        found = self._kept.get((group, attempt_id))
        if found is None or found.until <= time.monotonic():
            self.forget(group, attempt_id)
            return None
        receiver = replace(found.receiver, hold=hold, gone=gone)
        handles = [one.receipt_handle(receiver) for one in found.entries]
        outcomes = await settling.extend(group, handles, receiver.invisible_seconds, least_seconds=0)
        left = [one for one, refusal in zip(found.entries, outcomes, strict=True) if refusal is None]
        if not left:
            self.forget(group, attempt_id)
            return None
        with runtime.in_cell(receiver.cell):
            await hold.room()
            handout = Handout(receiver, left)
            await handout.read()
        received = await receives.of_handout(group, handout)
        self.keep(attempt_id, received)
        return received
