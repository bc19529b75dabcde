"""All scenarios of the simulated loop, by name."""

from tests.simulated.loop import (
    budgets,
    clients,
    draining,
    listening,
    ordering,
    promoting,
    relaying,
    splitting,
    writing,
)
from tests.simulated.loop.exploring import Scenario

SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for module in (writing, ordering, splitting, promoting, clients, relaying, draining, listening, budgets)
    for one in module.SCENARIOS
}
