"""Sessions that meet on one PostgreSQL end as if they had come one after another, in every order of their steps."""

import pytest

from tests.simulated.permutations.conftest import Play
from tests.simulated.permutations.scenarios import SCENARIOS

NAMES = [pytest.param(name, marks=[pytest.mark.long] if one.is_long else []) for name, one in SCENARIOS.items()]


@pytest.mark.parametrize("name", NAMES)
def test_every_interleaving_of_a_scenario_ends_as_a_serial_order_does(played: Play, name: str) -> None:
    scenario = SCENARIOS[name]

    interleavings = played(scenario.make)

    print(f"{name}: {interleavings} interleavings")
    assert interleavings == scenario.number
