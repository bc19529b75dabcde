"""Filtering: how long a receive's filter may look at messages, and when it pauses for the event loop."""

import asyncio
import time

from delivery.receive.deliveries import Receiver
from store.process import runtime
from store.rows import Head

# A filter runs for this time in one turn of the event loop, then pauses for this time. A small send needs about ten
# turns of the loop.
STEP_SECONDS = 0.001
# Time of all filters of a batch together, with pauses: the batch holds locks, and PostgreSQL ends a transaction whose
# client is idle for 0.5 s. The next batch filters the remaining messages.
BATCH_SECONDS = 0.1


class Filtering:
    """Runs the filter of one receive while a batch is written.

    The filter reads at least one message, so that each batch makes progress.
    """

    def __init__(self, receiver: Receiver, seconds: float) -> None:
        self._receiver = receiver
        self._step_began = time.perf_counter()
        self._ends = self._step_began + seconds
        self.is_over = False

    def resume(self) -> None:
        """Starts the time of a step again. Called after the event loop could run other work, for example during a
        statement.
        """
        self._step_began = time.perf_counter()

    async def goes_on(self) -> bool:
        """Whether the filter may read the next message: time is left, and the consumer is still connected."""
        if self._receiver.is_gone:
            return False
        if self._receiver.filter is None or time.perf_counter() - self._step_began < STEP_SECONDS:
            return True
        if time.perf_counter() >= self._ends:
            self.is_over = True
            return False
        await asyncio.sleep(STEP_SECONDS)
        self.resume()
        return not self._receiver.is_gone

    def takes(self, head: Head) -> bool:
        """Whether the receive wants this message. False for a dead letter of a topic that has left the cell: a copy."""
        if self._receiver.of_others and head.origin_topic_id in runtime.here().departed.topics:
            return False
        return self._receiver.filter is None or self._receiver.filter(head)
