"""Remembers which API key began a half message, so that a check is first offered to streams of the same key.

Each process knows only the half messages that it began since its start. A check of any other half message may be
offered to each key that may produce to its topic.
"""

from collections import OrderedDict
from uuid import UUID

from store.process import runtime
from store.process.shares import Shares

# The maximum number of half messages remembered per process, of which one key may have five eighths; 300 bytes each.
MAX_BEGUN = 50_000


class Beginners:
    """The API key that began each half message of this process, by transaction; the oldest entries are dropped."""

    def __init__(self) -> None:
        self._keys: OrderedDict[UUID, str] = OrderedDict()
        self._shares = Shares(MAX_BEGUN)

    def keep(self, transaction_id: UUID, key: str) -> None:
        """Notes the key that began a transaction."""
        if transaction_id in self._keys or self._shares.is_short(key):
            return
        if not self._shares.take(key):
            self.forget(next(iter(self._keys)))
            self._shares.take(key)
        self._keys[transaction_id] = key

    def forget(self, transaction_id: UUID) -> None:
        """Removes the entry of an ended transaction."""
        key = self._keys.pop(transaction_id, None)
        if key is not None:
            self._shares.give_back(key)

    def of(self, transaction_id: UUID) -> str | None:
        """The name of the key that began a transaction; None if it is unknown."""
        return self._keys.get(transaction_id)


def beginners() -> Beginners:
    """This process's object of the class Beginners."""
    return runtime.control(Beginners)
