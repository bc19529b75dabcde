"""Attempts: a receive that its consumer repeats under the same id is handed the same deliveries again.

The answer to a receive may be lost, and its deliveries are hidden then until their invisible time is over. RocketMQ's
clients name each receive by an attempt id, and repeat it under the same one: what is not settled by then is theirs.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from delivery.receipts import settling
from delivery.receive import receives
from delivery.receive.deliveries import HandedOut, Handout, Receiver
from delivery.receive.receives import Received
from store.process import runtime
from store.process.answer_budget import Hold
from store.process.shares import Shares

# Deliveries of all attempts of one process, some 160 bytes each; one key has five eighths of them. The oldest go first.
MAX_DELIVERIES = 64_000


class Attempt(NamedTuple):
    """What a receive was handed, without the messages, until its invisible time is over by time.monotonic()."""

    receiver: Receiver
    entries: Sequence[HandedOut]
    until: float


class Attempts:
    """The receives of this process by their key, and by their consumer group and their ids.

    Another process knows none of them: there a repeated one is handed what comes next, and the first deliveries come
    again when their time is over.
    """

    def __init__(self) -> None:
        # Of each key in the order in which they were kept.
        self._kept: defaultdict[str, dict[tuple[str, str], Attempt]] = defaultdict(dict)
        self._deliveries = Shares(MAX_DELIVERIES)

    def keep(self, attempt_id: str, received: Received) -> None:
        """Keeps what was handed out under an id."""
        handout = received.handout
        if handout is None or not handout.entries:
            return
        key, size = handout.receiver.hold.key, len(handout.entries)
        self.forget(key, received.group, attempt_id)
        while not self._deliveries.take(key, size):
            crowded = key if self._deliveries.is_short(key, size) else self._deliveries.largest
            if not self._kept.get(crowded):
                return
            self.forget(crowded, *next(iter(self._kept[crowded])))
        # Neither the messages nor what holds their bytes.
        receiver = replace(handout.receiver, hold=Hold(key), gone=None)
        until = time.monotonic() + receiver.invisible_seconds
        self._kept[key][received.group, attempt_id] = Attempt(receiver, list(handout.entries), until)

    def forget(self, key: str, group: str, attempt_id: str) -> None:
        """Drops what was given back."""
        found = self._kept[key].pop((group, attempt_id), None)
        if found is not None:
            self._deliveries.give_back(key, len(found.entries))
        if not self._kept[key]:
            del self._kept[key]

    async def again(
        self, group: str, attempt_id: str, hold: Hold, gone: asyncio.Future[object] | None
    ) -> Received | None:
        """What was handed out under an id and is not settled, hidden from now on for as long as the first time.

        None where nothing is left of it: the receive begins anew. Raises what `receives.entries` raises.
        """
        found = self._kept.get(hold.key, {}).get((group, attempt_id))
        if found is None:
            return None
        if found.until <= time.monotonic():
            self.forget(hold.key, group, attempt_id)
            return None
        receiver = replace(found.receiver, hold=hold, gone=gone)
        handles = [one.receipt_handle(receiver) for one in found.entries]
        outcomes = await settling.extend(group, handles, receiver.invisible_seconds, least_seconds=0)
        left = [one for one, refusal in zip(found.entries, outcomes, strict=True) if refusal is None]
        if not left:
            self.forget(hold.key, group, attempt_id)
            return None
        with runtime.in_cell(receiver.cell):
            await hold.room()
            handout = Handout(receiver, left)
            await handout.read()
        received = await receives.of_handout(group, handout)
        self.keep(attempt_id, received)
        return received
