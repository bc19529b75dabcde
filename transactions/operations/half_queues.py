"""The queues of the half messages that this process has begun last: their ends need no statement before the locks."""

from store.process.runtime import CONTROL

# 16 MiB at most. An older half message is looked up by NAME_QUEUES, as one that another process has begun.
MAX_REMEMBERED = 65_536


class HalfQueues:
    """A part of the runtime: from the ids of transactions to queues, as topic and number."""

    def __init__(self) -> None:
        self._queues: dict[bytes, tuple[int, int]] = {}
        # Of those in another cell than the control.
        self._cells: dict[bytes, int] = {}

    def keep(self, transaction_id: bytes, queue: tuple[int, int], cell: int) -> None:
        """Remembers the queue, as topic and number, of a half message that is stored in a cell."""
        if len(self._queues) >= MAX_REMEMBERED:
            oldest = next(iter(self._queues))
            del self._queues[oldest]
            self._cells.pop(oldest, None)
        self._queues[transaction_id] = queue
        if cell:
            self._cells[transaction_id] = cell

    def take(self, transaction_id: bytes) -> tuple[int, int] | None:
        """The queue of a half message that is to be ended, forgotten with this; None when it is not known here."""
        return self._queues.pop(transaction_id, None)

    def take_cell(self, transaction_id: bytes) -> int:
        """The cell of a half message whose queue was known here, forgotten with this."""
        return self._cells.pop(transaction_id, CONTROL)
