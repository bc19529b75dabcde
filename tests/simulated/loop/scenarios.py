"""All scenarios of the simulated loop, by name."""

from tests.simulated.loop import clients, splitting, writing
from tests.simulated.loop.exploring import Scenario

SCENARIOS: dict[str, Scenario] = {
    one.name: one for one in (*writing.SCENARIOS, *splitting.SCENARIOS, *clients.SCENARIOS)
}
