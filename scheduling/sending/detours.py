"""Detours: messages with a sharding key that are written stepwise; later ones of their queue must not overtake them."""

import contextlib
from collections import Counter
from collections.abc import Iterator


class Detours:
    """The queues, as topic and number, of the messages that are written stepwise now; later ones follow them."""

    def __init__(self) -> None:
        self._queues: Counter[tuple[int, int]] = Counter()

    def has(self, queue: tuple[int, int]) -> bool:
        """Whether a message of the queue is written stepwise now."""
        return bool(self._queues) and queue in self._queues

    @contextlib.contextmanager
    def of(self, queue: tuple[int, int]) -> Iterator[None]:
        """Messages of the queue are written stepwise within the block."""
        self._queues[queue] += 1
        try:
            yield
        finally:
            self._queues[queue] -= 1
            if not self._queues[queue]:
                del self._queues[queue]
