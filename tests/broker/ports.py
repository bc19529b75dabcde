"""Ports for the servers that tests start: of each process of tests its own, so that none takes another's."""

import itertools
import random
from collections.abc import Iterator

from mqbroker.embedded.folder import why_taken

# Below those of the product (`mqbroker.embedded.folder.PORTS`), which ./mq takes for itself within a test.
PORTS = range(10_000, 20_000)


def one_after_the_other(ports: range) -> Iterator[int]:
    """Ports by turns, so that a program that takes seconds to listen still finds its own free; from a random one on,
    because two runs of the tests may share the machine.
    """
    begin = random.randrange(len(ports))
    return itertools.cycle([*ports[begin:], *ports[:begin]])


_turns = [one_after_the_other(PORTS)]


def share(number: int, processes: int) -> None:
    """Has this process, a fork with this number of all processes of a run, take ports that none of the others takes."""
    count = len(PORTS) // processes
    _turns[0] = one_after_the_other(PORTS[number * count : (number + 1) * count])


def free_port() -> int:
    """A port that is free now, and that no other test takes before a round of all."""
    return next(port for port in _turns[0] if why_taken(port) is None)
