"""Attempts: a receive that is repeated with the same attempt id gets the same deliveries again.

If the answer to a receive is lost, its deliveries stay hidden until their invisible time is over. RocketMQ's clients
give each receive an attempt id and repeat the receive with it: they get the deliveries that are not settled yet.
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

# The most deliveries of all attempts that a process keeps, about 160 bytes each; one key has at most five eighths of
# them. Beyond this the oldest attempts of the key are dropped.
MAX_DELIVERIES = 64_000


class Attempt(NamedTuple):
    """The entries that a receive was handed, without messages. `until` is the end of the invisible time (monotonic)."""

    receiver: Receiver
    entries: Sequence[HandedOut]
    until: float


class Attempts:
    """The attempts of this process, by API key and by consumer group and attempt id.

    Another process does not know them: a receive that is repeated there is handed the next messages, and the first
    deliveries come again when their invisible time is over.
    """

    def __init__(self) -> None:
        # The attempts of each key, the oldest first.
        self._kept: defaultdict[str, dict[tuple[str, str], Attempt]] = defaultdict(dict)
        self._deliveries = Shares(MAX_DELIVERIES)

    def keep(self, attempt_id: str, received: Received) -> None:
        """Keeps the entries that a receive was handed, under its attempt id, for a repetition of the receive."""
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
        # The kept copy contains neither the messages nor the `hold` in which their bytes are counted.
        receiver = replace(handout.receiver, hold=Hold(key), gone=None)
        until = time.monotonic() + receiver.invisible_seconds
        self._kept[key][received.group, attempt_id] = Attempt(receiver, list(handout.entries), until)

    def forget(self, key: str, group: str, attempt_id: str) -> None:
        """Drops an attempt, for instance because its deliveries were returned."""
        found = self._kept[key].pop((group, attempt_id), None)
        if found is not None:
            self._deliveries.give_back(key, len(found.entries))
        if not self._kept[key]:
            del self._kept[key]

    async def again(
        self, group: str, attempt_id: str, hold: Hold, gone: asyncio.Future[object] | None
    ) -> Received | None:
        """Hides the unsettled deliveries of an attempt for another invisible time, and returns them.

        None when no delivery is left: the receive then gets the next messages. Raises the errors of `receives.entries`.
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
