"""All scenarios of the simulated loop, by name."""

from tests.simulated.loop import budgets, clients, listening, ordering, splitting, writing
from tests.simulated.loop.exploring import Scenario

SCENARIOS: dict[str, Scenario] = {
    one.name: one for module in (writing, ordering, splitting, clients, listening, budgets) for one in module.SCENARIOS
}
