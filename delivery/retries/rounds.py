"""Rounds: the order in which keys take turns, and where a process goes on."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from store.queues import Queue

Item = TypeVar("Item")

# Last keys that a process keeps, one per queue of a group.
MAX_KEYS = 20_000


def by_turns(items: Iterable[Item], key_of: Callable[[Item], str], after: str) -> list[Item]:
    """The first of each key behind `after`, round to that key again, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    found: list[tuple[int, bool, str, Item]] = []
    for item in items:
        key = key_of(item)
        found.append((seen[key], key <= after, key, item))
        seen[key] += 1
    return [item for *_, item in sorted(found, key=lambda one: one[:3])]


class LastKeys:
    """The key that a process served last in a queue of a fair group; what is lost costs a key one turn."""

    def __init__(self) -> None:
        self._keys: dict[tuple[int, Queue], str] = {}

    def of(self, group_id: int, queue: Queue) -> str:
        return self._keys.get((group_id, queue), "")

    def keep(self, group_id: int, queue: Queue, key: str) -> None:
        """Of a batch that is durable."""
        if len(self._keys) >= MAX_KEYS:
            self._keys.clear()
        self._keys[group_id, queue] = key
