"""The table of what proof holds names each model, each room of interleavings and each scenario that there is."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.house.sources import ROOT
from tests.simulated.loop.scenarios import SCENARIOS
from tests.simulated.models.test_models import TWINS

SIMULATED = ROOT / "tests" / "simulated"
COLUMNS = ("promise", "models", "interleavings", "scenarios", "bound")


def named(column: str) -> set[str]:
    """The names in one column of the table."""
    text = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8").partition("### What proof holds")[2]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    cells = [row[COLUMNS.index(column)] for row in rows if len(row) == len(COLUMNS)]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def modules_with(definition: str, files: Iterable[Path]) -> set[str]:
    """The modules whose text has a definition of this form."""
    return {path.stem for path in files if re.search(definition, path.read_text(encoding="utf-8"), re.MULTILINE)}


def test_each_model_is_named_with_the_promise_that_it_holds() -> None:
    assert named("models") == TWINS.keys() == modules_with(r"^MODEL = ", (SIMULATED / "models").glob("[!t]*.py"))


def test_each_room_of_interleavings_is_named_with_the_promise_that_it_holds() -> None:
    files = (path for path in (SIMULATED / "permutations").glob("*.py") if not path.name.startswith("test_"))

    assert named("interleavings") == modules_with(r"^class \w+\(Scenario", files)


def test_each_scenario_is_named_with_the_promise_that_it_holds() -> None:
    assert named("scenarios") == SCENARIOS.keys()
