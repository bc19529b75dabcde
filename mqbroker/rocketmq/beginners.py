"""Beginners: which key began a half message, so that its check is offered to the streams of this key first.

Kept in memory, of one process. A half message that another process has begun, or this one before its last start, may be
asked of each key that may produce to its topic.
"""

from collections import OrderedDict
from uuid import UUID

from store.process import runtime
from store.process.shares import Shares

# Half messages of one process, of one key five eighths; 300 bytes each. Beyond them any key may be asked.
MAX_BEGUN = 50_000


class Beginners:
    """The names of the keys that began the half messages of this process, by transaction; the oldest go first."""

    def __init__(self) -> None:
        self._keys: OrderedDict[UUID, str] = OrderedDict()
        self._shares = Shares(MAX_BEGUN)

    def keep(self, transaction_id: UUID, key: str) -> None:
        """A key has begun a transaction."""
        if transaction_id in self._keys or self._shares.is_short(key):
            return
        if not self._shares.take(key):
            self.forget(next(iter(self._keys)))
            self._shares.take(key)
        self._keys[transaction_id] = key

    def forget(self, transaction_id: UUID) -> None:
        """A transaction is ended."""
        key = self._keys.pop(transaction_id, None)
        if key is not None:
            self._shares.give_back(key)

    def of(self, transaction_id: UUID) -> str | None:
        """The key that began a transaction; None where it is not known."""
        return self._keys.get(transaction_id)


def beginners() -> Beginners:
    """The beginners of this process."""
    return runtime.control(Beginners)
