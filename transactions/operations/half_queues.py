"""The queues of the newest half messages of this process: their ends need no statement that finds the queue."""

from store.process.runtime import CONTROL

# Half messages that are kept, 16 MiB at most. NAME_QUEUES finds the queue of an older half message, or of another
# process's half message.
MAX_REMEMBERED = 65_536


class HalfQueues:
    """The queue (topic id, queue number) of each half message, by the transaction's id. A part of the runtime."""

    def __init__(self) -> None:
        self._queues: dict[bytes, tuple[int, int]] = {}
        # The cells of half messages that are not in the control.
        self._cells: dict[bytes, int] = {}

    def keep(self, transaction_id: bytes, queue: tuple[int, int], cell: int) -> None:
        """Keeps the queue (topic id, queue number) and the cell of a half message."""
        if len(self._queues) >= MAX_REMEMBERED:
            oldest = next(iter(self._queues))
            del self._queues[oldest]
            self._cells.pop(oldest, None)
        self._queues[transaction_id] = queue
        if cell:
            self._cells[transaction_id] = cell

    def take(self, transaction_id: bytes) -> tuple[int, int] | None:
        """Removes and returns the queue of a half message; None if this process does not have it."""
        return self._queues.pop(transaction_id, None)

    def take_cell(self, transaction_id: bytes) -> int:
        """Removes and returns the cell of a half message whose queue this process had."""
        return self._cells.pop(transaction_id, CONTROL)
