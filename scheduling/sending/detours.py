"""Detours: queues whose messages with sharding keys are written stepwise, so that later messages do not overtake."""

import contextlib
from collections import Counter
from collections.abc import Iterator


class Detours:
    """The queues (topic and number) with messages that are written stepwise now. Later messages are also stepwise."""

    def __init__(self) -> None:
        self._queues: Counter[tuple[int, int]] = Counter()

    def has(self, queue: tuple[int, int]) -> bool:
        """Whether a message of the queue is written stepwise now."""
        return bool(self._queues) and queue in self._queues

    @contextlib.contextmanager
    def of(self, queue: tuple[int, int]) -> Iterator[None]:
        """A block in which a message of the queue is written stepwise."""
        self._queues[queue] += 1
        try:
            yield
        finally:
            self._queues[queue] -= 1
            if not self._queues[queue]:
                del self._queues[queue]
