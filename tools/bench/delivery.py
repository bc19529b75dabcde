"""Consumers: the rate of consuming a backlog, and the turns of a fair group."""

from functools import partial

from tools.bench import fairness
from tools.bench.report import Cases

BACKLOG = 200_000

CASES: Cases = {"backlog": partial(fairness.drains, "backlog", BACKLOG, 0, ("plain",)), **fairness.CASES}
