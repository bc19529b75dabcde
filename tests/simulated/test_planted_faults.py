"""Each planted fault is seen by the layer that has to see it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tests.simulated.faults import FAULTS, PERMUTATIONS, TESTS, Fault

FEWEST = 30


def named(fault: Fault) -> str:
    """A fault as a run names it."""
    return f"{Path(fault.file).stem}: {fault.like}"


def test_there_are_thirty_faults_each_in_place_and_with_its_layer() -> None:
    places = [(fault.file, fault.old) for fault in FAULTS]

    assert len(FAULTS) >= FEWEST
    assert [place for place in places if (ROOT / place[0]).read_text().count(place[1]) != 1] == []
    assert {fault.layer for fault in PERMUTATIONS} == {"permutation"}


@pytest.mark.long
@pytest.mark.parametrize("fault", TESTS, ids=named)
def test_a_fault_is_seen_by_the_test_that_holds_what_it_breaks(fault: Fault) -> None:
    command = [sys.executable, "-m", "tests.simulated.planting", fault.file, fault.old, fault.new, fault.seen_by]

    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
