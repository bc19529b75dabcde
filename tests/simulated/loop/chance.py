"""The choices of one simulated run: made by a seed and noted, or repeated from the notes of an earlier run."""

import random
from collections.abc import Sequence

# How often a run leaves the order in which callbacks became ready: each run takes one of these.
DISORDERS = (0.0, 0.1, 0.5, 1.0)


class Chance:
    """Chooses among numbers. Choice 0 is always the plain one: the oldest callback, no fault, the shortest time.

    The choices are noted in `schedule`. A run that is given a schedule repeats its choices, and takes choice 0 once the
    schedule has ended: so a shorter schedule is a simpler run.
    """

    def __init__(self, seed: int, given: Sequence[int] | None = None) -> None:
        self._random = random.Random(seed)
        self._given = given
        self.schedule: list[int] = []
        self._disorder = DISORDERS[self.choose(len(DISORDERS))]

    def choose(self, most: int) -> int:
        """A number from 0 to `most` - 1, each as likely as the others."""
        chosen = int(self._random.random() * most) if self._given is None else self._next(most)
        self.schedule.append(chosen)
        return chosen

    def one_in(self, many: int) -> bool:
        """True in one of `many` cases."""
        chosen = int(self._random.random() < 1 / many) if self._given is None else self._next(2)
        self.schedule.append(chosen)
        return chosen == 1

    def turn(self, ready: int) -> int:
        """Which of several ready callbacks runs next."""
        if self._given is None:
            rolled = self._random.random()
            chosen = int(rolled / self._disorder * ready) if rolled < self._disorder else 0
        else:
            chosen = self._next(ready)
        self.schedule.append(chosen)
        return chosen

    def _next(self, most: int) -> int:
        assert self._given is not None
        place = len(self.schedule)
        return self._given[place] % most if place < len(self._given) else 0
