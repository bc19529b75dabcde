"""Shares: how many things of one kind a process keeps for callers, of which no key has more than a part."""

from collections import Counter


class Shares:
    """Places, each of one key: so many of the process, five eighths of them of one key at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.most_of_key = most * 5 // 8
        self._by_key: Counter[str] = Counter()
        self.taken = 0

    def take(self, key: str, places: int = 1) -> bool:
        """Takes places for a key; False where there are not so many."""
        if self.taken + places > self._most or self.is_short(key, places):
            return False
        self._by_key[key] += places
        self.taken += places
        return True

    def is_short(self, key: str, places: int = 1) -> bool:
        """Whether the key has so many places already that it may not take these."""
        # A look-up of a Counter keeps nothing.
        return self._by_key[key] + places > self.most_of_key

    def give_back(self, key: str, places: int = 1) -> None:
        """Places of the key are free again."""
        self.taken -= places
        self._by_key[key] -= places
        if not self._by_key[key]:
            del self._by_key[key]

    @property
    def largest(self) -> str:
        """The key with most places; there is one."""
        return max(self._by_key, key=self._by_key.__getitem__)
