"""Filtering: how long a receive's filter may look at messages, and when it lets the event loop run in between."""

import asyncio
import time

from delivery.receive.deliveries import Receiver
from store.process import runtime
from store.rows import Head

# A filter looks for so long in one turn of the event loop, then pauses for as long: a small send passes the loop some
# ten times.
STEP_SECONDS = 0.001
# The filters of one batch together, pauses included: its locks are held meanwhile, and the server ends a transaction
# whose client rests for 0.5 s. What is left is looked at in the next batch.
BATCH_SECONDS = 0.1


class Filtering:
    """The filter of one receive while a batch is written. It looks at one message at least, so each batch moves on."""

    def __init__(self, receiver: Receiver, seconds: float) -> None:
        self._receiver = receiver
        self._step_began = time.perf_counter()
        self._ends = self._step_began + seconds
        self.is_over = False

    def resume(self) -> None:
        """Begins a step: the event loop has just run, as where a statement was awaited."""
        self._step_began = time.perf_counter()

    async def goes_on(self) -> bool:
        """Whether the next message may be looked at: neither is the time over, nor has the consumer hung up."""
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
        """Whether the receive wants this message. Dead letters of a topic that has left the cell are copies."""
        if self._receiver.of_others and head.origin_topic_id in runtime.here().departed.topics:
            return False
        return self._receiver.filter is None or self._receiver.filter(head)
