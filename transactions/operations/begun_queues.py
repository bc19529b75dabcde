"""The queues of the half messages that this process has begun last: their ends need no statement before the locks."""

# 16 MiB at most. An older half message is looked up by NAME_QUEUES, as one that another process has begun.
MAX_REMEMBERED = 65_536


class BegunQueues:
    """A part of the runtime: from the ids of transactions to queues, as topic and number."""

    def __init__(self) -> None:
        self._queues: dict[bytes, tuple[int, int]] = {}

    def keep(self, transaction_id: bytes, queue: tuple[int, int]) -> None:
        """Remembers the queue, as topic and number, of a half message that is stored."""
        if len(self._queues) >= MAX_REMEMBERED:
            del self._queues[next(iter(self._queues))]
        self._queues[transaction_id] = queue

    def take(self, transaction_id: bytes) -> tuple[int, int] | None:
        """The queue of a half message that is to be ended, forgotten with this; None when it is not known here."""
        return self._queues.pop(transaction_id, None)
