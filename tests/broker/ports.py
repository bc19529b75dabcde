"""Ports for the servers that tests start: of each process of tests its own, so that none takes another's."""

import itertools
import os
import random
from collections.abc import Iterator

from embedded.folder import why_taken

# Below those of the product (`embedded.folder.PORTS`), which ./mq takes for itself within a test.
FIRST, COUNT = 10_000, 10_000


def share() -> range:
    """The ports of this process of pytest-xdist, or all of them without it."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    mine = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    ports = COUNT // processes
    return range(FIRST + mine * ports, FIRST + (mine + 1) * ports)


# One after the other, so that a program that takes seconds to listen still finds its port free; from a place of its
# own, because two runs of the tests may share the machine.
_begin = random.randrange(len(share()))
_ports: Iterator[int] = itertools.cycle([*share()[_begin:], *share()[:_begin]])


def free_port() -> int:
    """A port that is free now, and that no other test takes before a round of all."""
    return next(port for port in _ports if why_taken(port) is None)
