"""The lanes of the tests: what runs beside what, and which process takes which lanes."""

import pytest

# What runs when nothing else does; what Spark runs, never twice at once; what else is heavy, never twice at once; what
# needs the broker that all tests of a process share; the rest.
ALONE, SPARK, HEAVY, SHARED, PLAIN = LANES = ("alone", "spark", "heavy", "shared", "plain")
# The lanes of tests that others cannot join, by mark: `alone` compares rates, the others take a core or the memory of
# several brokers.
BY_MARK = {"alone": ALONE, "spark": SPARK, "browser": HEAVY, "heavy": HEAVY}


def own_lane_of(item: pytest.Item) -> str:
    """The lane to which the marks of a test lead; empty for a test that bears any others beside it."""
    return next((lane for mark, lane in BY_MARK.items() if item.get_closest_marker(mark)), "")


def light_lane_of(items: list[pytest.Item]) -> str:
    """The lane of a group of tests that bear any others beside them."""
    return SHARED if any(needs_broker(item) for item in items) else PLAIN


def needs_broker(item: pytest.Item) -> bool:
    """Whether a test uses the broker that a process starts once for all of its tests.

    Half of the processes take these tests last, and few of them or none, because a broker that idles takes 4 % of a
    core. The others begin with them: many of these wait, beside others that compute.
    """
    if not isinstance(item, pytest.Function):
        return False
    made = item._fixtureinfo.name2fixturedefs.get("broker")
    # A folder may have a fixture of this name for itself.
    return made is not None and made[-1].baseid == "tests"


def lanes_of(number: int, count: int) -> list[str]:
    """The lanes from which one of `count` processes takes its groups, in this order.

    The first process takes all that Spark runs, the second one what else is heavy. Every second process begins with
    tests of the shared broker; each goes on with what the rest have left.
    """
    lanes = [PLAIN, SHARED] if number % 2 else [SHARED, PLAIN]
    if number == min(1, count - 1):
        lanes.insert(0, HEAVY)
    return lanes if number else [ALONE, SPARK, *lanes]
