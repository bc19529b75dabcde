"""Shares: the places of one kind that a process has for callers. No API key may take more than a part of them."""

from collections import Counter


class Shares:
    """A number of places; one key takes at most five eighths of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.most_of_key = most * 5 // 8
        self._by_key: Counter[str] = Counter()
        self.taken = 0

    def take(self, key: str, places: int = 1) -> bool:
        """Takes places for a key. False if the process or the key has too few left."""
        if self.taken + places > self._most or self.is_short(key, places):
            return False
        self._by_key[key] += places
        self.taken += places
        return True

    def is_short(self, key: str, places: int = 1) -> bool:
        """Whether the key may not take this many more places."""
        # Looking up a missing key in a Counter does not add the key.
        return self._by_key[key] + places > self.most_of_key

    def give_back(self, key: str, places: int = 1) -> None:
        """Returns places that the key has taken."""
        self.taken -= places
        self._by_key[key] -= places
        if not self._by_key[key]:
            del self._by_key[key]

    @property
    def largest(self) -> str:
        """The key with the most places. At least one key must have a place."""
        return max(self._by_key, key=self._by_key.__getitem__)
