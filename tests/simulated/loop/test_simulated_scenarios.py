"""The product's own code under some schedules of each scenario; `./mq simulate` runs as many as there is time for."""

import pytest

from tests.simulated.loop.exploring import explore, report
from tests.simulated.loop.planted_work import WORK
from tests.simulated.loop.planting import PLANTED, Planted
from tests.simulated.loop.scenarios import SCENARIOS

# A second or so of each, by what a schedule takes. Another seed each time would fail where nobody has changed anything.
RUNS = {
    "pipelined-writer": 200,
    "stepwise-writer": 60,
    "both-writers": 80,
    "ordered-sends": 120,
    "split-of-a-cell": 80,
    "split-by-the-map-alone": 80,
    "client-coalescing": 200,
    "client-run": 25,
    "client-checks": 30,
    "promotion": 60,
    "relay": 100,
    "outbox-drain": 120,
    "listeners": 80,
    "answer-budget": 100,
}
# Each has shown a fault, of the product or of the loop itself.
ONCE = (
    ("stepwise-writer", 731380576645),
    ("stepwise-writer", 15614155418),
    ("split-of-a-cell", 731380576613),
    ("split-of-a-cell", 140435124225),
    ("split-of-a-cell", 674055860934),
)
# Of a planted fault: each has a seed near the one that shows it.
MOST_RUNS = 400


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_acknowledged_is_lost_and_nobody_waits_for_ever(name: str) -> None:
    explored = explore(SCENARIOS[name], 1, RUNS[name])

    assert explored.failure is None, report(name, explored.failure)
    assert explored.distinct > explored.runs * 0.9


@pytest.mark.parametrize(("name", "seed"), ONCE)
def test_a_seed_that_has_failed_once_passes(name: str, seed: int) -> None:
    explored = explore(SCENARIOS[name], seed, 1)

    assert explored.failure is None, report(name, explored.failure)


@pytest.mark.parametrize("fault", [*PLANTED, *WORK], ids=lambda fault: fault.says)
def test_a_planted_fault_is_found_and_its_seed_repeats_it(fault: Planted) -> None:
    scenario = SCENARIOS[fault.scenario]
    with fault.planted():
        found = explore(scenario, fault.seed, MOST_RUNS, shrinks=False).failure
        assert found is not None, f"{fault.scenario} does not find: {fault.says}"
        again = explore(scenario, found.seed, 1, shrinks=False).failure

    assert again is not None
    assert report(fault.scenario, again) == report(fault.scenario, found)
    assert explore(scenario, found.seed, 1).failure is None
