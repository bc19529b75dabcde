"""A planted fault of a statement, or of a function that runs in one transaction, ends some interleaving otherwise."""

import pytest

from tests.simulated.faults import PERMUTATIONS, Fault
from tests.simulated.permutations.conftest import Play
from tests.simulated.permutations.exploring import Wrong
from tests.simulated.permutations.interleaving import Deadlocked
from tests.simulated.permutations.scenarios import SCENARIOS
from tests.simulated.planting import planted


def named(fault: Fault) -> str:
    """A fault as a run names it."""
    return f"{fault.file}: {fault.like}"


@pytest.mark.parametrize("fault", PERMUTATIONS, ids=named)
def test_a_planted_fault_is_refuted_by_an_interleaving(played: Play, fault: Fault) -> None:
    with planted(fault.file, fault.old, fault.new), pytest.raises((Wrong, Deadlocked)) as refuted:
        played(SCENARIOS[fault.seen_by].make)

    print(refuted.value)
