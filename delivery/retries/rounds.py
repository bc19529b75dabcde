"""Rounds: the order in which keys take turns, and the key where the next round begins."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from store.queues import Queue

Item = TypeVar("Item")

# The most last keys that a process keeps, one per queue of a group.
MAX_KEYS = 20_000


def by_turns(items: Iterable[Item], key_of: Callable[[Item], str], after: str) -> list[Item]:
    """Orders items in rounds: one item of each key, then a second of each.

    A round begins with the key after `after`.
    """
    seen: Counter[str] = Counter()
    found: list[tuple[int, bool, str, Item]] = []
    for item in items:
        key = key_of(item)
        found.append((seen[key], key <= after, key, item))
        seen[key] += 1
    return [item for *_, item in sorted(found, key=lambda one: one[:3])]


class LastKeys:
    """The last key that a process served in each queue of a fair group. A lost entry costs a key one turn."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, Queue], str] = {}

    def of(self, group_id: int, queue: Queue) -> str:
        return self._keys.get((group_id, queue), "")

    def keep(self, group_id: int, queue: Queue, key: str) -> None:
        """Keeps the last served key, after the commit."""
        if len(self._keys) >= MAX_KEYS:
            self._keys.clear()
        self._keys[group_id, queue] = key
